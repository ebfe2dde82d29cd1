"""Long values, handled a piece at a time, so that other sessions run in between."""
