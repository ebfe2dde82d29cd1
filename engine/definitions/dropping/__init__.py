"""What goes with an object that is dropped, and in which order."""
