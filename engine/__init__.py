"""The database: joins pgwire, planner and txn."""
