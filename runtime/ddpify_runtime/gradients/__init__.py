"""How gradients are averaged over the ranks: in buckets."""
