"""Binding of statements about the session and the server."""
