"""The versioned catalog and the virtual catalog relations."""
