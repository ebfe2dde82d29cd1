"""Readers of the raw parse tree: one module for each group of statements."""
