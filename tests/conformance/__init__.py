"""One suite per interface."""
