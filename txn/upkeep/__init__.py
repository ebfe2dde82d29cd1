"""What goes on beside transactions: flushes, merges, index builds, and recovery before them."""
