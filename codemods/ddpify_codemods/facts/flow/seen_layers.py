"""What networks are made of, where all of it is seen: what is true of other networks need not be said of these."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache

from ..reach import all_names
from ..script import KEPT, Script
from .values import Bound, Class, Function, Items, Library, Module, Value, entries

_LOOKS_UP = frozenset({"setattr", "getattr", "__dict__", "_modules", "vars", "globals", "eval", "exec"})
_STACKS = frozenset({"TransformerEncoder", "TransformerDecoder"})
# Functions that make nothing of a network: they get a number, and sizes.
_OF_NUMBERS = frozenset({"range", "int", "float", "bool", "len", "min", "max", "abs", "round", "print", "isinstance"})
_LAYOUTS = frozenset({"view", "reshape", "expand", "repeat", "chunk", "split", "unsqueeze", "squeeze", "flatten"})
# What a network has to be for its numbers to be all parameters: torch's other norms have running statistics.
_NORMS = frozenset({"LayerNorm", "GroupNorm", "RMSNorm", "LocalResponseNorm", "CrossMapLRN2d"})
_MAKE_BUFFERS = ("register_buffer", "Buffer", "spectral_norm", "parametriz", "prune", "quantiz")


def layers_of(module: Module, scripts: Sequence[Script], vague: Set[Module]) -> set[Module] | None:
    """A network and all of its parts; None where it may have others.

    Args: the network; the program; the containers that have got something that is not seen.
    """
    found: set[Module] = set()
    waiting = [module]
    while waiting:
        part = waiting.pop()
        if part in found:
            continue
        found.add(part)
        inner = None if part in vague else _parts_of(part, scripts)
        if inner is None:
            return None
        waiting += inner
    return found


def has_no_buffers(layers: Iterable[Module], scripts: Sequence[Script]) -> bool:
    """Whether networks with these parts have parameters alone, and nothing that a broadcast would have to send."""
    named = (name for script in scripts for name in all_names(script))
    makes = any(word in name for name in named for word in _MAKE_BUFFERS)
    return not makes and not any("Norm" in last and last not in _NORMS for last in map(_last, layers))


def parts_seen(module: Module) -> set[Module]:
    """A network and those of its parts that are seen."""
    found: set[Module] = set()
    waiting = [module]
    while waiting:
        part = waiting.pop()
        if part in found:
            continue
        found.add(part)
        held = part.contents.all() if part.contents is not None else ()
        values = entries([*part.told.values(), *held, *part.attributes.values()])
        waiting += [*part.layers, *(thing for value in values for thing in value.things if isinstance(thing, Module))]
    return found


def _parts_of(module: Module, scripts: Sequence[Script]) -> list[Module] | None:
    """What a network holds itself; None where that is not all seen."""
    values = [*module.told.values(), *(module.contents.all() if module.contents is not None else ())]
    if module.cls is None:
        of_torch = module.name.startswith("torch.nn.") and _last(module)[:1].isupper() and not module.is_one_of
        stacked = module.told.get(0, module.told.get("encoder_layer", module.told.get("decoder_layer")))
        unknown = _last(module) in _STACKS and (stacked is None or not stacked.only(Module))
        if not of_torch or unknown or not isinstance(module.made, ast.Call):
            return None
    elif not _is_plain(module.cls):
        return None
    for name, value in module.attributes.items():
        values.append(value)
        alone = value.things and all(isinstance(each, Module) for each in value.things)
        if module.cls is not None and not alone and not _is_number(module.cls, name, scripts):
            return None
    inner = [thing for value in entries(values) for thing in value.things]
    kinds = (Module, Items, Library, Function, Class, Bound)
    return [each for each in inner if isinstance(each, Module)] if all(isinstance(e, kinds) for e in inner) else None


def _last(module: Module) -> str:
    return module.name.rpartition(".")[2]


@lru_cache(maxsize=KEPT)
def _is_plain(cls: Class) -> bool:
    """Whether a class is derived from torch.nn.Module alone, and gives its parts names that are seen."""
    bases = [cls.script.qualified(base) for base in cls.node.bases]
    names = {each.id for each in ast.walk(cls.node) if isinstance(each, ast.Name)}
    names |= {each.attr for each in ast.walk(cls.node) if isinstance(each, ast.Attribute)}
    return bases == ["torch.nn.Module"] and names.isdisjoint(_LOOKS_UP)


def _is_number(cls: Class, name: str, scripts: Sequence[Script]) -> bool:
    """Whether an attribute of a network is used as numbers are, and never called or handed to anything."""
    return all(
        script.parents[node] and _is_computed_with(script, node)
        for script in scripts
        for node in script.find(ast.Attribute)
        if node.attr == name and isinstance(node.ctx, ast.Load) and (script is cls.script or _is_called(script, node))
    )


def _is_called(script: Script, node: ast.AST) -> bool:
    parent = script.parents[node]
    return isinstance(parent, ast.Call) and parent.func is node


def _is_computed_with(script: Script, node: ast.AST) -> bool:
    parent = script.parents[node]
    while isinstance(parent, ast.Tuple | ast.Subscript | ast.keyword | ast.Starred):
        if isinstance(parent, ast.Subscript) and parent.slice is node:
            return True
        node, parent = parent, script.parents[parent]
    if isinstance(parent, ast.Call):
        return parent.func is not node and _takes_numbers(script, parent)
    if isinstance(parent, ast.If | ast.IfExp | ast.While | ast.Assert):
        return parent.test is node
    return isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.Slice | ast.FormattedValue)


def _takes_numbers(script: Script, call: ast.Call) -> bool:
    """Whether a call is of a function of torch, of Python's, of a layer, or of a method of a tensor."""
    name = script.qualified(call.func)
    if name in _OF_NUMBERS or name.startswith("torch."):
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr in script.defined:
        return False
    return name.startswith("self.") or call.func.attr in _LAYOUTS


def of_modules(values: Iterable[Value]) -> bool:
    """Whether all that a container gets is seen: layers, places and names, and lists of layers."""
    return all(
        value.host
        or value.constant is not None
        or (value.things and all(isinstance(each, Module | Items) for each in value.things))
        for value in entries(values)
    )
