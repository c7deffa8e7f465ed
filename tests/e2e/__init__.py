"""Real scripts, in real processes, held against their originals."""
