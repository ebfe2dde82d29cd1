"""What statements need of a role."""
