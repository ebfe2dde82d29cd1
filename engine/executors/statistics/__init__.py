"""What is known of tables' columns: distinct values, NULLs, bounds, lengths; for Spark's planner and for
pg_stats (docs/internals/statistics.md).
"""
