"""One query, every executor: the same answer."""
