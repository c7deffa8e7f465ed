"""For programs that are distributed by hand with torch's DistributedDataParallel, moved to Horovod."""
