"""The crash proof: servers killed over and over under load, and what they left looked at."""
