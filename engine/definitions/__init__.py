"""Definitions: what CREATE, ALTER, DROP and their kin do to catalog and shards, and who may."""
