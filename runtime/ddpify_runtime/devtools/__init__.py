"""For the developer of a script for XLA: its devices as threads of one process."""
