"""Blobs: files of a directory, objects of a bucket."""
