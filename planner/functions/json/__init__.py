"""json, jsonb and jsonpath."""
