"""Tensors and numbers of which a rank holds a part: batches, outputs, losses, counts."""
