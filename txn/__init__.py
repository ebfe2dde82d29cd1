"""Strictly serializable transactions over durable shards; knows nothing of SQL."""
