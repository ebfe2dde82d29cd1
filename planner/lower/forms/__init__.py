"""Engine forms of built-in functions, operators and aggregates."""
