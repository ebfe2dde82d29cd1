"""Statements of all classes: how one is run."""
