"""For programs in the plain style: each takes out what one rule of rules/plain has put in, for one process again."""
