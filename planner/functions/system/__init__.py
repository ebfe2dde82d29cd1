"""Functions about the catalog, the session and the server."""
