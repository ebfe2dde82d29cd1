"""Large objects: bytes in pages, by number, with owners and rights (manual 35)."""
