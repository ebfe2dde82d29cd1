"""Texts, bytea and regular expressions."""
