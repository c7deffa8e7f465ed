"""What older versions of torch_xla called otherwise; read from torch_xla 2.9.0 and its deprecation warnings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .devices import source
from .script import Script

_RUNTIME_NAMES = (
    "addressable_device_count",
    "device_type",
    "global_device_count",
    "global_ordinal",
    "local_device_count",
    "local_ordinal",
    "local_process_count",
    "process_count",
    "process_index",
    "set_device_type",
    "world_size",
)
_RENAMED = {
    "torch_xla.core.xla_model.xla_device": "torch_xla.device",
    "torch_xla.core.xla_model.mark_step": "torch_xla.sync",
    "torch_xla.core.xla_model.set_rng_state": "torch_xla.manual_seed",
    "torch_xla.core.xla_model.get_ordinal": "torch_xla.runtime.global_ordinal",
    "torch_xla.core.xla_model.get_local_ordinal": "torch_xla.runtime.local_ordinal",
    "torch_xla.core.xla_model.xrt_world_size": "torch_xla.runtime.world_size",
    "torch_xla.amp.GradScaler": "torch.amp.GradScaler",
} | {f"torch_xla.experimental.pjrt.{name}": f"torch_xla.runtime.{name}" for name in _RUNTIME_NAMES}

# Modules that 2.9 lacks or moved, and where their contents are; "" for nowhere.
MOVED_MODULES = {
    "torch_xla.experimental.xla_sharding": "torch_xla.distributed.spmd",
    "torch_xla.experimental.pjrt_backend": "torch_xla.distributed.xla_backend",
    "torch_xla.experimental.pjrt": "",
    "torch_xla.distributed.xla_dist": "",
    "torch_xla.utils.gcsfs": "",
}

_AUTOCAST = ("torch_xla.amp.autocast", "torch_xla.amp.autocast_mode.autocast")
_GONE = ("get_ordinal", "xrt_world_size", "GradScaler")  # AttributeError in 2.9
_DEPRECATED = ("xla_device", "mark_step")  # DeprecationWarning in 2.9; the others work silently


@dataclass(frozen=True)
class OldName:
    """A use of an old name.

    node: the expression. meaning: what it means. code: the source of the new one. modules: the import that it needs.
    by_hand: why nothing can take its place without its author; "" as a rule.
    """

    node: ast.expr
    meaning: str
    code: str
    modules: tuple[str, ...]
    by_hand: str = ""

    @property
    def state(self) -> str:
        """What torch_xla 2.9 makes of it."""
        name = self.meaning.rpartition(".")[2]
        if name in _GONE or ".experimental.pjrt." in self.meaning:
            return "is gone"
        return "is deprecated" if name in _DEPRECATED else "has a newer name"


def is_in_sight(call: ast.Call) -> bool:
    """Whether all arguments of a call are written in it: none comes by `*given` or `**given`."""
    return all(word.arg for word in call.keywords) and not any(isinstance(each, ast.Starred) for each in call.args)


def autocasts(script: Script) -> Iterator[ast.Call]:
    """Every call of the autocast of torch_xla, which is torch's by now."""
    return (call for call in script.find(ast.Call) if script.qualified(call.func) in _AUTOCAST)


def old_names(script: Script) -> Iterator[OldName]:
    """Every use of a function or class that is called otherwise now."""
    alias = next((name for name, meaning in script.imported.items() if meaning == "torch_xla.runtime"), "")
    for node in script.nodes:
        if not isinstance(node, (ast.Attribute, ast.Name)) or not isinstance(node.ctx, ast.Load):
            continue
        meaning = script.qualified(node)
        code = _RENAMED.get(meaning, "")
        if not code:
            continue
        modules: tuple[str, ...] = (f"import {code.partition('.')[0]}",)
        if code.startswith("torch_xla.runtime."):
            code = f"{alias or 'xr'}.{code.rpartition('.')[2]}"
            modules = () if alias else ("import torch_xla.runtime as xr",)
        yield OldName(node, meaning, code, modules, _by_hand(script, node, meaning))


def _by_hand(script: Script, node: ast.expr, meaning: str) -> str:
    call = script.parents[node]
    if meaning.endswith(".xla_device") and isinstance(call, ast.Call) and call.func is node and _has_kind(call):
        return "choose the kind of device by PJRT_DEVICE, and call torch_xla.device()"
    text = next((source(script, parent) for parent in script.ancestors(node) if isinstance(parent, ast.JoinedStr)), "")
    if text and (ast.unparse(node) not in text or "{}" in text):
        return "rewrite it by hand: it stands in an f-string"
    return ""


def _has_kind(call: ast.Call) -> bool:
    return len(call.args) > 1 or any(keyword.arg == "devkind" for keyword in call.keywords)
