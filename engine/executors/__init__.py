"""What runs queries: the row executor, DuckDB and Spark."""
