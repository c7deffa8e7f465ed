"""What runs on real GPUs, over NCCL; `make gpu`, for CI has none."""
