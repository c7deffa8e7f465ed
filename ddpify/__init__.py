"""ddpify: turn a training script for one device into one that trains on many."""

__version__ = "0.1.0"
