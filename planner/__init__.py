"""SQL text to a typed, routed plan; pure functions over frozen values."""
