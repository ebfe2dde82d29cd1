"""Dates, times, intervals and time zones."""
