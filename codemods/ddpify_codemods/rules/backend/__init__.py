"""For programs that are distributed by hand, moved to another backend of torch (gloo, nccl, xccl, ccl, mpi)."""
