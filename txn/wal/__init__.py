"""The txns shard: the one log through which every commit goes."""
