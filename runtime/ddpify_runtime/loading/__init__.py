"""Loading this rank's samples of each global batch."""
