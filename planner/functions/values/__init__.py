"""Values of other types: arrays, ranges, records, enums, addresses, and hashes and comparison of all types."""
