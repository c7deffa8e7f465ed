"""Objects that live on rank 0, such as loggers, and give their values to all."""
