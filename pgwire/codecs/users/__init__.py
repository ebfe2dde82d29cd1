"""Values of types that users make: composites, ranges, and what both are packed in."""
