"""Golden scripts of the wire protocol."""
