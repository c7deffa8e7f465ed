"""For programs that are distributed by hand, moved to another target."""
