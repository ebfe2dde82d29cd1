"""Tests of bulk work: files on the server."""
