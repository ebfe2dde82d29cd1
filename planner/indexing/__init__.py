"""What an index can serve: operator classes, comparisons, conditions that imply others."""
