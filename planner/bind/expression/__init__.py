"""Binding of expressions: columns, operators, calls, sub-selects."""
