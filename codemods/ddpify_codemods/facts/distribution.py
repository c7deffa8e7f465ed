"""How a program is distributed already: not at all, by torch.distributed in eager mode, or by torch_xla."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ..plain_words import Words
    from .script import Script

Kind = Literal["one process", "eager", "torch_xla"]


def kind(scripts: Iterable[Script]) -> Kind:
    """The kind of a program: XLA code if a file imports torch_xla, eager DDP if one makes a process group."""
    scripts = tuple(scripts)
    if any(_imports_xla(script) for script in scripts):
        return "torch_xla"
    if any(joins_process_group(script, call) for script in scripts for call in script.find(ast.Call)):
        return "eager"
    return "one process"


def joins_process_group(script: Script, call: ast.Call) -> bool:
    """Whether a call is `torch.distributed.init_process_group(…)`."""
    return script.qualified(call.func) in (
        "torch.distributed.init_process_group",
        "torch.distributed.distributed_c10d.init_process_group",
    )


def speaks(scripts: Iterable[Script], words: Words) -> bool:
    """Whether a program joins its processes in the words of an engine."""
    return any(
        script.qualified(call.func).replace(".utils.", ".").replace(".launcher.", ".") in words.joins
        for script in scripts
        for call in script.find(ast.Call)
    )


def _imports_xla(script: Script) -> bool:
    names = [alias.name for node in script.find(ast.Import) for alias in node.names]
    names += [node.module or "" for node in script.find(ast.ImportFrom) if not node.level]
    return any(name.split(".")[0] == "torch_xla" for name in names)
