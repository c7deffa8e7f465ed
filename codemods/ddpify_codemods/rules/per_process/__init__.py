"""For programs that run in one process whose batch size is to be that of each (--batch-size per-process)."""
