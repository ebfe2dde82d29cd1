"""Tests of the durable half of txn."""
