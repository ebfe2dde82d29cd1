"""The server: its parts put together, starting, standing by, keeping up."""
