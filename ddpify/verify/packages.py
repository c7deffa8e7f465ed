"""What `ddpify verify` needs beside ddpify itself; looked for before anything here imports it."""

from __future__ import annotations

import importlib.util

from ddpify.files import BadInput

NEEDED = ("torch", "numpy", "ddpify_runtime")


def require() -> None:
    """Return if all is installed.

    Raises:
        BadInput: something is not; it says what to install.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        remedy = "in a checkout of ddpify: pip install ./runtime '.[verify]'"
        raise BadInput("ddpify verify", f"needs {' and '.join(missing)} in this environment", remedy)
