"""Long values and messages, handled a piece at a time, so that other sessions run in between."""
