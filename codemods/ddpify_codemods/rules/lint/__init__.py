"""Advice on programs that are distributed by hand, which stay as they are: `after` is written by hand."""
