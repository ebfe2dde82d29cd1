"""Rows of pg_catalog's and information_schema's relations."""
