"""Plans, and where a session and the server keep them."""
