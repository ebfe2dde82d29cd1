"""From a statement's text to a plan, and from a plan to a running query."""
