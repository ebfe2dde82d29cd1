"""Transactions: reads, writes, locks asked for, and how they end."""
