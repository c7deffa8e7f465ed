"""Tests send Ctrl-C to processes that they start; a shell that runs the tests in the background has it ignored."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
