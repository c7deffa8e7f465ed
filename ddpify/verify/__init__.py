"""Two runs of a training held against each other: recorded step by step in real processes, compared, reported."""
