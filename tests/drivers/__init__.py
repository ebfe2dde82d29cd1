"""Real drivers."""
