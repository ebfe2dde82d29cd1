"""Binding of definitions: each kind of object in its own module."""
