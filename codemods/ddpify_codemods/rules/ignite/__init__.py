"""For programs that are distributed by hand with torch, moved to the words of another engine (Ignite)."""
