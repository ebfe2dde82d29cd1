"""The row executor: Python over indexes, chains and catalog relations."""
