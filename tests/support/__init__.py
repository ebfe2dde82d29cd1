"""Shared test support."""
