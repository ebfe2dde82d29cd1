"""Logs: consensus in SQLite and in PostgreSQL."""
