"""Query tree to DuckDB and Spark SQL; the only door to sqlglot."""
