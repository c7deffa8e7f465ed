"""ddpify: turn a training script for one device into one that trains on many."""

__version__ = "0.1.0"
COMMANDS = ("rules", "explain", "verify", "run")  # any other first word is a path
