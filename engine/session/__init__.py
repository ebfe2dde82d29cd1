"""What a session has: who it is, its settings, its transaction, the catalog as it sees it, its plans."""
