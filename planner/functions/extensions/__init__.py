"""Functions of extensions."""
