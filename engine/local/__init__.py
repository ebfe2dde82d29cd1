"""The DuckDB executor."""
