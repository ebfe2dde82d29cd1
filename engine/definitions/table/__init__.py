"""Definitions of tables and of what belongs to them."""
