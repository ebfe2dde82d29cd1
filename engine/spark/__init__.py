"""The Spark executor."""
