"""One client: what pgwire asks for, the session it runs in, its statements, portals, cursors and limits."""
