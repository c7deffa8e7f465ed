"""For programs of one process, with ddpify_runtime; the plain style has rules of its own for the same."""
