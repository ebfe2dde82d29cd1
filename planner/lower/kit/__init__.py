"""What engine SQL is made with: nodes, lowered values, the two dialects, exact arithmetic."""
