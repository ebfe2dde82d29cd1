"""What every floor of the engine may use."""
