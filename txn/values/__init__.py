"""Values as columns, as keys, and as bytes of the log."""
