"""How gradients are averaged over the ranks: by torch's buckets, or one all-reduce."""
