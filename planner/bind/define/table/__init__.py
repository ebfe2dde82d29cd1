"""Binding of tables, their columns, constraints, partitions, indexes and sequences."""
