"""For programs that are distributed by hand and train on the CPU, moved to a target with accelerators."""
