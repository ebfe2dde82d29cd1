"""Rewrites of the Query tree, one per file."""
