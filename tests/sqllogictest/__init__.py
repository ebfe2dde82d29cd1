"""Tests of the sqllogictest runner."""
