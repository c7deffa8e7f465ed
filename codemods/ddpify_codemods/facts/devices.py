"""Where a script picks an accelerator, and which of its branches a target leaves dead."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ..targets import TARGETS, Target
from .script import KEPT, Script
from .tree import index, walk

ACCELERATOR = re.compile(r"(cuda|mps)(:\d+)?")
_ASKS_FOR_GPU = {"torch.cuda.is_available", "torch.accelerator.is_available"}
_ASKS = {*_ASKS_FOR_GPU, "torch.backends.mps.is_available", "torch.mps.is_available"}
_WITH_GPU = replace(
    next(each for each in TARGETS.values() if each.module), module=""
)  # for all that is asked in the run
_INDEX_NAME = re.compile(r"gpus?|(gpu|cuda|device)_?(id|idx|index|num|no|number|rank)|(local_)?rank")


@dataclass(frozen=True)
class Branches:
    """What a target decides when the script is read: is there an accelerator or not?"""

    script: Script
    target: Target

    def truth(self, test: ast.expr) -> bool | None:
        """What a condition comes to on this target; None when only the run can know."""
        return self._truth(test, self._flags)

    def _truth(self, test: ast.expr, flags: Mapping[str, bool]) -> bool | None:
        if isinstance(test, ast.Call):
            return self._answer(test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._truth(test.operand, flags)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            decides = isinstance(test.op, ast.Or)
            values = {self._truth(value, flags) for value in test.values}
            if decides in values:
                return decides
            return None if None in values else not decides
        if isinstance(test, ast.Constant) and isinstance(test.value, bool) and self.script.in_converted:
            return test.value  # what a conversion has made of such a question
        return flags.get(dotted(test))

    def _answer(self, call: ast.Call) -> bool | None:
        if self.target.module or not asks_for_accelerator(self.script, call):
            return None  # torch answers in the run
        return self.target.is_accelerator and self.script.qualified(call.func) in _ASKS_FOR_GPU

    @cached_property
    def _flags(self) -> Mapping[str, bool]:
        """Names that only ever hold such an answer: {"use_cuda": False}."""
        nodes = self.script.find(ast.Name, ast.Attribute)
        stored = Counter(dotted(node) for node in nodes if not isinstance(node.ctx, ast.Load))
        stored.update(argument.arg for argument in _arguments_with_default(self.script))
        answers: dict[str, list[bool]] = {}
        for node in self.script.find(ast.Assign):
            value = self._truth(node.value, {})
            if value is not None and len(node.targets) == 1:
                answers.setdefault(dotted(node.targets[0]), []).append(value)
        return {
            name: values[0]
            for name, values in answers.items()
            if name and len(values) == stored[name] and len(set(values)) == 1
        }

    def device(self, node: ast.expr) -> str:
        """The device that an expression names on this target, "cpu" or the target's own; "" when none for sure."""
        if isinstance(node, ast.IfExp):
            truth = self.truth(node.test)
            body, orelse = (self.target.device_type if number else self.device(way) for way, number in _ways(node))
            if truth is not None:
                return body if truth else orelse
            return body if body == orelse else ""
        if isinstance(node, ast.Constant) and node.value == "cpu":
            return "cpu"
        return self.target.device_type if is_gpu_string(node) else ""

    def names_gpu(self, node: ast.expr) -> bool:
        """Whether the expression is the name of a GPU, or a choice of which that is one outcome."""
        if isinstance(node, ast.IfExp):
            truth = self.truth(node.test)
            outcomes = _ways(node)[truth is False : 1 if truth else 2]
            return any(number or self.names_gpu(way) for way, number in outcomes)
        return is_gpu_string(node)

    @cached_property
    def dead(self) -> frozenset[ast.AST]:
        """Every node that this target never runs."""
        return frozenset(node for root in self._dead_roots() for node in walk(root))

    def _dead_roots(self) -> Iterator[ast.AST]:
        for node in self.script.find(ast.If, ast.IfExp, ast.BoolOp):
            if not isinstance(node, ast.BoolOp):
                truth = self.truth(node.test)
                if truth is not None:
                    lost = node.orelse if truth else node.body
                    yield from lost if isinstance(lost, list) else [lost]
            else:
                decides = isinstance(node.op, ast.Or)
                values = [self.truth(value) for value in node.values]
                if decides in values:
                    yield from node.values[values.index(decides) + 1 :]


@lru_cache(maxsize=KEPT)
def branches_of(script: Script, target: Target) -> Branches:
    """The branches of a file, looked at once for all rules."""
    return Branches(script, target)


def taken_with_gpu(script: Script, choice: ast.IfExp) -> bool | None:
    """Whether a choice takes its first way where there is a GPU, and the other one where there is none: `a if
    torch.cuda.is_available() else b`; None for one by other things."""
    return branches_of(script, _WITH_GPU).truth(choice.test)


def dotted(node: ast.AST) -> str:
    """`args.cuda` as text; "" for anything but names and attributes."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def asks_for_accelerator(script: Script, call: ast.Call) -> bool:
    """Whether a call asks if there is an accelerator: `torch.cuda.is_available()`."""
    return script.qualified(call.func) in _ASKS


def is_index(node: ast.expr | None) -> bool:
    """Whether an expression is the number of a GPU: 0, args.gpu, local_rank."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    return node is not None and bool(_INDEX_NAME.fullmatch(dotted(node).rpartition(".")[2].lower()))


def _ways(choice: ast.IfExp) -> list[tuple[ast.expr, bool]]:
    """What a choice may come to, and whether that is the number of a GPU, beside a device: `0 if ask() else "cpu"`."""
    ways = [choice.body, choice.orelse]
    names = any(is_gpu_string(way) or (isinstance(way, ast.Constant) and way.value == "cpu") for way in ways)
    return [(way, names and is_index(way)) for way in ways]


def inside_f_string(script: Script, node: ast.AST) -> bool:
    """Whether a node stands in an f-string, where Python 3.11 does not know its place for sure."""
    return node in _parts_of_f_strings(script.tree)


@lru_cache(maxsize=KEPT)
def _parts_of_f_strings(tree: ast.Module) -> frozenset[ast.AST]:
    whole = index(tree).by_kind.get(ast.JoinedStr, ())
    return frozenset(part for node in whole for part in walk(node) if part is not node)


def source(script: Script, node: ast.AST) -> str:
    """The text of a node as it is written."""
    return ast.get_source_segment(script.text, node) or ast.unparse(node)


def indexed_string(node: ast.AST, kind: str = "cuda") -> bool:
    """Whether an expression spells the name of a numbered GPU: "cuda:0", f"cuda:{gpu}", "cuda:" + str(gpu)."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.startswith(kind) and _is_numbered(node.value, kind)
    if isinstance(node, ast.JoinedStr):
        return len(node.values) == 2 and _is_text(node.values[0], f"{kind}:")
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        return _is_text(node.left, *(f"{kind}:{form}" for form in ("", "%d", "%s", "%i")))
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "format"
        and _is_text(node.func.value, *(f"{kind}:{form}" for form in ("{}", "{:d}", "{0}")))
    )


def _is_numbered(text: str, kind: str) -> bool:
    return re.fullmatch(rf"{kind}:\d+", text) is not None


def is_gpu_string(node: ast.AST) -> bool:
    """Whether an expression spells a GPU, with or without a number."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(ACCELERATOR.fullmatch(node.value))
    return indexed_string(node)


def number_of_gpu(script: Script, node: ast.AST) -> int | None:
    """The number of the GPU that an expression names by a constant, if it does: 1 for "cuda:1" and `.cuda(1)`."""
    if isinstance(node, ast.Constant) and indexed_string(node):
        return int(str(node.value).split(":")[1])
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[-1], ast.Constant):
        moves = isinstance(node.func, ast.Attribute) and node.func.attr in ("cuda", "to")
        if (moves or script.qualified(node.func) == "torch.device") and type(node.args[-1].value) is int:
            return int(node.args[-1].value)
    return None


def second_gpu(script: Script) -> ast.expr | None:
    """Where a script names a second GPU by its number, for work of its own; None where it names one at most."""
    numbers: dict[int, ast.expr] = {}
    lists = (ast.Compare, ast.Dict, ast.List, ast.Tuple, ast.Set)
    for node in script.find(ast.Constant, ast.Call):
        number = number_of_gpu(script, node)
        if number is not None and not isinstance(script.parents[node], lists):
            numbers.setdefault(number, node)
    return list(numbers.values())[1] if len(numbers) > 1 else None


def _is_text(node: ast.AST, *texts: str) -> bool:
    return isinstance(node, ast.Constant) and node.value in texts


def quoted_like(script: Script, node: ast.AST, text: str) -> str:
    """A string constant in the quotes that a node's own text uses."""
    mark = "'" if "'" in source(script, node) and '"' not in source(script, node) else '"'
    return f"{mark}{text}{mark}"


def _arguments_with_default(script: Script) -> Iterator[ast.arg]:
    for node in script.find(ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        yield from positional[len(positional) - len(node.defaults) :]
        yield from (arg for arg, default in zip(node.kwonlyargs, node.kw_defaults, strict=True) if default)
