"""Full-text search (manual 9.13)."""
