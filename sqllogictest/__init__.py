"""A sqllogictest runner that talks to any PostgreSQL server."""
