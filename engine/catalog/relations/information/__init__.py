"""information_schema: the standard's views over the same catalog."""
