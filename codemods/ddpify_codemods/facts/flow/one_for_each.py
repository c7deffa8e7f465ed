"""One row of parameters that each sample gets: `torch.repeat_interleave(self.token, len(x), dim=0)`.

The rows of others are put one behind the other as often as there are samples, and lie elsewhere on each rank.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..called_modules import last_name
from ..script import Script
from .dimensions import of_dimensions
from .operations import of_sizes
from .values import SAME, Module, Value, differentiated

_PARAMETER = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
_OF_SIZES = frozenset({"torch.zeros", "torch.ones", "torch.rand", "torch.randn", "torch.empty"})
_GIVEN = ("repeats", "dim")
_RESIZES = frozenset({"resize_", "resize_as_", "set_", "register_parameter", "_parameters"})


def one_for_each(
    scripts: Sequence[Script], node: ast.expr, tensor: Value, args: Sequence[Value], words: Mapping[str, Value]
) -> Value | None:
    """What `repeat_interleave` makes of parameters that have one row to be repeated; None for others.

    Args: the program; the parameters, as they are written, and what is known of them; how often, and along which
    dimension, by place and by name.
    """
    given = dict(zip(_GIVEN, args, strict=False)) | {**words}
    times, along = given.get("repeats", SAME), given.get("dim", SAME).constant
    if {*given} != {*_GIVEN} or len(args) > len(_GIVEN) or times.kind != "size" or times.things or tensor.is_local:
        return None
    sizes = _sizes(scripts, node, tensor)
    if not isinstance(along, int) or not -len(sizes) <= along < len(sizes) or sizes[along] != 1:
        return None
    found = of_sizes([*([SAME] * (along % len(sizes))), times])
    return found and differentiated(of_dimensions(found, len(sizes)), [replace(tensor, things=frozenset())])


def _sizes(scripts: Sequence[Script], node: ast.expr, tensor: Value) -> list[object]:
    """How long parameters are along each dimension, as far as that is written down; nothing where it is not seen, or
    where they are not taken as they are."""
    if not isinstance(node, ast.Attribute):
        return []
    found = [_written(scripts, node.attr, each.made) for each in tensor.things if isinstance(each, Module)]
    return found[0] if len(found) == len(tensor.things) == 1 else []


def _written(scripts: Sequence[Script], name: str, made: ast.AST) -> list[object]:
    script = next((each for each in scripts if made in each.parents), None)
    if not isinstance(made, ast.Call) or script is None or script.qualified(made.func) not in _PARAMETER:
        return []
    data = made.args[0] if made.args else None
    if (
        not isinstance(data, ast.Call)
        or script.qualified(data.func) not in _OF_SIZES
        or not _is_named(script, name, made)
        or any(map(_may_resize, scripts))
    ):
        return []
    sizes = data.args[0].elts if len(data.args) == 1 and isinstance(data.args[0], ast.Tuple | ast.List) else data.args
    if any(isinstance(each, ast.Starred) for each in sizes):
        return []
    return [each.value if isinstance(each, ast.Constant) else None for each in sizes]


def _is_named(script: Script, name: str, made: ast.Call) -> bool:
    """Whether parameters are given a name as an attribute, `self.token = nn.Parameter(…)`."""
    statement = script.parents[made]
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return isinstance(target, ast.Attribute) and target.attr == name


def _may_resize(script: Script) -> bool:
    """Whether a file may give parameters other sizes later: `p.data = …`, `setattr(self.token, "data", …)`."""
    sets = (each for each in script.find(ast.Attribute) if each.attr == "data" and isinstance(each.ctx, ast.Store))
    if any(True for _ in sets) or any(each.attr in _RESIZES for each in script.find(ast.Attribute)):
        return True
    calls = (each for each in script.find(ast.Call) if last_name(each.func) in ("setattr", "__setattr__"))
    return any(isinstance(part, ast.Constant) and part.value == "data" for each in calls for part in each.args)
