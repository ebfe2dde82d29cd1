"""What every part of txn may use: errors, timestamps, the values exchanged with the engine."""
