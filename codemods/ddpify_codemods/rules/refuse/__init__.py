"""Programs of one process that cannot be converted."""
