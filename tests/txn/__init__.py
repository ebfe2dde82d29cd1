"""Tests of txn."""
