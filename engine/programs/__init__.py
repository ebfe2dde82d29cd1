"""Functions that users write."""
