"""Aggregates in Python."""
