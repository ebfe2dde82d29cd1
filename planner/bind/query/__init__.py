"""Binding of queries, clause by clause."""
