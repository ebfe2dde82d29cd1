"""Text and binary forms of every type, one file per family."""
