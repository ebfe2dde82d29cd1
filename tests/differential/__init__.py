"""Comparison with PostgreSQL."""
