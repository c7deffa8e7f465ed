"""Which installed libraries a model is made of.

Hooks that its own library sets (to let gradients through frozen embeddings, to return hidden states) belong to its
forward, and are tried like the rest of it. Those of the script, or of a logger, are there to see something.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
from typing import Any

from torch import nn


def libraries_of(module: nn.Module) -> set[str]:
    """The packages of the classes of a module and its parts, as far as these are installed; but for torch itself."""
    packages = {type(part).__module__.partition(".")[0] for part in module.modules()}
    return {package for package in packages - {"torch"} if is_installed(package)}


def package(function: Any) -> str:
    """The package that a function, or an object that is called, comes from."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__module__", None) or type(function).__module__
    return str(name).partition(".")[0]


@functools.cache
def is_installed(package: str) -> bool:
    """Whether a package belongs to the installation, like torch, rather than to the script."""
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and file.startswith((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
