"""Golden scripts."""
