"""Rows of statement classes, a module for what belongs together; ``engine.statements.registry`` joins them."""
