"""For programs that are distributed by hand with Horovod, moved to torch's own DistributedDataParallel."""
