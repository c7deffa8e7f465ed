"""What may be held by the parts of what a collate function computes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Literal, NoReturn

from .concatenated import Concatenated, Offsets
from .lengthened import Behind, Lengthened, Missing
from .padding import Padded

# same: alike for all batches.  one: made of one sample, whichever it is.  first: the first sample, or a part of it.
# column: a list with an entry for each sample.  opened: a column of tensors whose first dimension is 1.
# columns: a list of columns.  stacked: tensors with a row for each sample.  new: an empty list.
# numbered: what enumerate makes of a column.  place: where a sample is in it.
# longest: the largest of a number of each sample, or what grows with it.  count: how many samples there are.
# unordered: all samples, in another order than what is made of them.
# A tuple: what a collection holds, by its keys where it is Keyed.
Kind = Literal[
    "same",
    "one",
    "first",
    "column",
    "opened",
    "columns",
    "stacked",
    "new",
    "numbered",
    "place",
    "longest",
    "count",
    "unordered",
]
Laid = Padded | Concatenated | Offsets | Missing | Behind | Lengthened
Part = Kind | Laid | tuple["Part", ...]
Names = Mapping[str, "Part"]

DEFAULTS = frozenset(f"torch.utils.data.{place}default_collate" for place in ("", "dataloader.", "_utils.collate."))
STACKS = DEFAULTS | frozenset(
    {f"torch.{name}" for name in ("stack", "tensor", "as_tensor", "from_numpy")}
    | {f"torch.{name}Tensor" for name in ("", "Long", "Float", "Double", "Int", "Half", "Bool", "Byte")}
    | {f"numpy.{name}" for name in ("stack", "array", "asarray")}
)
JOINS = frozenset({"torch.cat", "torch.concat", "numpy.concatenate"})
COLUMNS = ("column", "opened")


class Keyed(tuple[Part, ...]):
    """What a dict holds, in the order of its keys."""

    keys: tuple[str, ...]

    def __new__(cls, keys: Iterable[str], parts: Iterable[Part]) -> Keyed:
        made = super().__new__(cls, parts)
        made.keys = tuple(keys)
        return made


class Unclear(Exception):
    """Something in a collate function is not known to keep its samples apart."""


def unclear() -> NoReturn:
    raise Unclear


def flat(part: Part) -> list[Kind | Laid]:
    """The kinds of all that a part holds."""
    return [kind for each in part for kind in flat(each)] if isinstance(part, tuple) else [part]


def of_one(part: Part) -> bool:
    """Whether something is computed from one sample alone."""
    return set(flat(part)) <= {"same", "one"}


def is_stacked(part: Part) -> bool:
    return all(map(is_stacked, part)) and bool(part) if isinstance(part, tuple) else part == "stacked"


def is_of_turn(part: Part) -> bool:
    """Whether something is of one sample, which the next one has not."""
    kinds = flat(part)
    return any(each in ("one", "place") or isinstance(each, Missing | Behind) for each in kinds) or any(
        isinstance(each, Lengthened) and not each.of_all for each in kinds
    )


def either(first: Part, second: Part) -> Part:
    """What is one of two parts."""
    if first == second:
        return first
    if is_stacked(first) and is_stacked(second):
        return "stacked"
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(either(one, other) for one, other in zip(first, second, strict=True))
    return "one" if of_one(first) and of_one(second) else unclear()


def is_zero(node: ast.expr) -> bool:
    """Whether an expression is the number 0."""
    return isinstance(node, ast.Constant) and node.value == 0 and node.value is not False
