"""How the event loop and the threads beside it share the processors."""
