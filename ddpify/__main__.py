"""`python -m ddpify`."""

from ddpify.cli import main

main()
