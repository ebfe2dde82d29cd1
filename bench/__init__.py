"""Benchmarks against peers."""
