"""Sources and subscriptions: what flows in and out by itself."""
