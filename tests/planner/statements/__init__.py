"""Rows of statement classes."""
