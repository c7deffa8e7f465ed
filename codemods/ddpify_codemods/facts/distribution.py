"""How a program is distributed already: not at all, by torch.distributed in eager mode, or by torch_xla."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from .tree import KEPT

if TYPE_CHECKING:
    from ..plain_words import Words
    from .script import Script

_JOINS = frozenset({"torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group"})

Kind = Literal["one process", "eager", "torch_xla"]


def kind(scripts: Iterable[Script]) -> Kind:
    """The kind of a program: XLA code if a file imports torch_xla, eager DDP if one makes a process group."""
    scripts = tuple(scripts)
    if any(_imports_xla(script) for script in scripts):
        return "torch_xla"
    if any(called_names(script) & _JOINS for script in scripts):
        return "eager"
    return "one process"


def joins_process_group(script: Script, call: ast.Call) -> bool:
    """Whether a call is `torch.distributed.init_process_group(…)`."""
    return script.qualified(call.func) in _JOINS


@lru_cache(maxsize=KEPT)
def called_names(script: Script) -> frozenset[str]:
    """The full names of everything that a file calls where the program may come."""
    unused = unused_code(script)
    return frozenset(script.qualified(call.func) for call in script.find(ast.Call) if call not in unused)


@lru_cache(maxsize=KEPT)
def unused_code(script: Script) -> frozenset[ast.AST]:
    """Every node of the functions of a file that the program never calls: helpers for programs that join a group."""
    functions = (node for node in script.tree.body if getattr(node, "name", "") in script.never_used)
    return frozenset(part for function in functions for part in ast.walk(function))


def speaks(scripts: Iterable[Script], words: Words) -> bool:
    """Whether a program joins its processes in the words of an engine."""
    return any(
        name.replace(".utils.", ".").replace(".launcher.", ".") in words.joins
        for script in scripts
        for name in called_names(script)
    )


@lru_cache(maxsize=KEPT)
def _imports_xla(script: Script) -> bool:
    names = [alias.name for node in script.find(ast.Import) for alias in node.names]
    names += [node.module or "" for node in script.find(ast.ImportFrom) if not node.level]
    return any(name.split(".")[0] == "torch_xla" for name in names)
