"""Blob and consensus stores, parts and shards."""
