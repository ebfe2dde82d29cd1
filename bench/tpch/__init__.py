"""TPC-H: schema, queries with validation parameters, runner."""
