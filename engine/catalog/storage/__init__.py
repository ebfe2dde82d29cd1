"""How catalog objects are stored, and what happens where they cannot be read."""
