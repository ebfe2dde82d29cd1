"""Transactions as SQL sees them: blocks, timestamps and timelines, snapshots, conflicts, and running again."""
