"""For programs of one process, in both styles."""
