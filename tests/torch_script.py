"""Runs a script that uses torch alone, `torchrun … torch_script.py SCRIPT`, and ends past Python's own end.

torch 2.13 aborts 4 of 50 good runs of DistributedDataParallel over gloo there: a worker thread asks for the interpreter
in vain ("terminate called without an active exception"). What a script raises, and its own exit code, stay.
"""

import atexit
import os
import runpy
import sys

if __name__ == "__main__":
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
