"""Query trees to engine SQL."""
