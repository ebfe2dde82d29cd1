"""The catalog as one session sees it and locks it."""
