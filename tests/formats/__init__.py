"""Data directories as earlier commits left them, one for each format, and what makes them."""
