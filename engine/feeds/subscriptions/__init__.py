"""SUBSCRIBE, and subscriptions the server remembers by name."""
