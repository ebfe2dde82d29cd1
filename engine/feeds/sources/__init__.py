"""Sources: tables that are kept from elsewhere, exactly once (docs/guide/sources.md)."""
