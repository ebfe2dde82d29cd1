"""Users' functions and procedures that run statements of their own."""
