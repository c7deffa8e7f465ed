"""What `--resume` has to know: the loops that train, what they carry from one round to the next, what they change."""
