"""Sequences: how far each has counted, what a session has drawn, and the DDL that makes them."""
