"""Tests of pgwire."""
