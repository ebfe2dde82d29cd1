"""Correlated sub-queries made into joins, for engines that take none."""
