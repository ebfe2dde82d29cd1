"""PostgreSQL wire protocol v3: bytes to events and back, no database."""
