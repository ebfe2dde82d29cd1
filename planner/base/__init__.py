"""What every module of the planner may use: errors, names as SQL writes them, places in a text."""
