"""A run that is ended at any moment goes on from its last checkpoint, at the very step, also with other ranks."""
