"""Golden scripts of bound trees."""
