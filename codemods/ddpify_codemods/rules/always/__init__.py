"""Asked of every program, of one without a training loop too."""
