"""Partitions: bounds, the way from a row to its partition, and what INSERT does in each."""
