"""What writes rows."""
