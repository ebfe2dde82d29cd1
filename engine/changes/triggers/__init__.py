"""Triggers of tables: which fire when, what they are told, what they make of rows."""
