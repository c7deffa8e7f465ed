"""The rows of a rank, and the collectives that split and join them under autograd."""
