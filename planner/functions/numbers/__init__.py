"""Numbers: arithmetic, rounding, formatting."""
