"""Is a division right? A forward is tried on few rows before it is divided."""
