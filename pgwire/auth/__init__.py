"""Authentication exchanges as message exchanges without I/O."""
