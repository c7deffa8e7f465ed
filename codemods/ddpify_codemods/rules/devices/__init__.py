"""What names devices, in programs of one process and in those that are distributed by hand."""
