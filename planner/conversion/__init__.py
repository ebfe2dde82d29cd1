"""Type conversion (manual chapter 10): casts, candidates, the type that several expressions share, collations."""
