"""Version chains, indexes and snapshots in memory."""
