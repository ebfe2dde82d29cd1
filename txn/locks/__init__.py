"""Lock modes, queues and deadlock policies."""
