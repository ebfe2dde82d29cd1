"""Binding of what changes rows: INSERT, UPDATE, DELETE, MERGE, COPY, and WITH items that do."""
