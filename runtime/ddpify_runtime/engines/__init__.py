"""What runs the collectives and owns the device: torch.distributed itself, or XLA."""
