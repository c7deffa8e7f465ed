"""A converted file as the script for one device that it stands for: what the rules see of it.

`--check` is a gate only if a converted file is read again. Every rule would have to know its own output, and the facts
would have to look through it (`rank_zero_only(torch.save)` is a call of torch.save). So it is done once, here: the tree
that the rules see leaves out what conversions put in, while every node keeps its place in the text. What a rule then
asks for is either there already (`missing` drops it) or new, and is written into the file as it stands. Nothing is
taken out and put back, so the lines that a person has changed since stay as they are, also where they use
ddpify_runtime in ways of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from .facts.tree import index, parsed_anew
from .named_samplers import makes_sampler, named_sampler
from .rule import ChangeArgument, Edit, Insert, Replace, ReplaceImport
from .runtime_names import RUNTIME, runtime_aliases, runtime_name
from .targets import own_calls, own_devices, own_modules

Located = TypeVar("Located", bound=ast.AST)

# Functions around another one, a path or a sampler: `rank_zero_only(torch.save)`.
AROUND = frozenset({"rank_zero_only", "rank_zero_first", "rank_zero_value", "rank_zero_path"})
AROUND |= {"DistributedSamplerWrapper", "resumable", "goes_on", "counted"}
# What is torch's own in one process, and where torch has it.
TORCH = {"DataLoader": "torch.utils.data", "DataParallel": "torch.nn", "grad": "torch.autograd"}
SHARDS = "fully_shard"
_WRAPPERS = frozenset({"DistributedDataParallel", "replicate", SHARDS})
_ALONE = frozenset({"init_process_group", "destroy_process_group", "barrier", "resume_from", "restore", "carried"})
_SHARDED = "ZeroRedundancyOptimizer"
_OWN_NAMES = {name: name for name in (*_WRAPPERS, *_ALONE, *AROUND, "broadcast")}
_WRONG_SIDE, _OTHER_SCOPE = 10**6, 10**9  # lines away: farther than any right place


@dataclass(frozen=True, eq=False)
class Settled:
    """A statement that a conversion has put in (or a person, in the same words).

    at: where. key: what it does. scope: the first line of its function, 0 at module level.
    """

    at: ast.stmt
    key: str
    scope: int


@dataclass(frozen=True, eq=False)
class View:
    """A converted file.

    original: its tree. tree: what the rules see. names: what its names of ddpify_runtime mean. statements: those that
    `tree` leaves out. nodes: those of `tree` that already are what a rule would make of them.
    """

    original: ast.Module
    tree: ast.Module
    names: Mapping[str, str]
    statements: tuple[Settled, ...] = ()
    nodes: frozenset[ast.AST] = field(default=frozenset())

    @property
    def sharded(self) -> list[int]:
        """The lines on which an optimizer's state is divided."""
        calls = (node for node in index(self.original).nodes if isinstance(node, ast.Call))
        return [call.lineno for call in calls if sharded_class(call, self.names) is not None]

    @property
    def shards_models(self) -> bool:
        """Whether a process keeps a part of a model."""
        return SHARDS in self.names.values()

    @property
    def divides(self) -> list[int]:
        """The lines on which a module is made distributed that each process keeps whole."""
        calls = (node for node in index(self.original).nodes if isinstance(node, ast.Call))
        return [
            call.lineno for call in calls if is_wrap(call, self.names) and runtime_name(call.func, self.names) != SHARDS
        ]

    @property
    def wraps(self) -> bool:
        """Whether a module is made distributed in the file."""
        calls = (node for node in index(self.original).nodes if isinstance(node, ast.Call))
        return any(is_wrap(call, self.names) for call in calls)


def view(original: ast.Module, text: str) -> View | None:
    """What the rules see of a converted file; None for a file that does not import ddpify_runtime.

    Args: its tree, which stays as it is, and the text that it was made of.
    """
    names = runtime_aliases(original)
    if names is None:
        return None
    reader = _ConvertedReader(names)
    tree = reader.visit(parsed_anew(text))
    assert isinstance(tree, ast.Module)
    return View(original, tree, names, tuple(reader.statements), frozenset(reader.nodes))


def missing(seen: View, edits: Sequence[tuple[str, Edit]]) -> list[tuple[str, Edit]]:
    """Those of the edits, each with its rule, that the file does not have yet."""
    inserts = [edit for _, edit in edits if isinstance(edit, Insert)]
    there = _matched(seen, inserts)
    return [
        (rule, edit)
        for rule, edit in edits
        if id(edit) not in there
        and not (isinstance(edit, Replace) and edit.node in seen.nodes and _is_ours(edit))
        and not (isinstance(edit, ReplaceImport) and edit.at in seen.nodes)
        and not (isinstance(edit, ChangeArgument) and edit.node in seen.nodes)
    ]


def _is_ours(edit: Replace) -> bool:
    return bool((AROUND | _WRAPPERS | {_SHARDED}) & set(edit.imports)) or any(
        device in edit.template for device in own_devices()
    )


def _matched(seen: View, inserts: Sequence[Insert]) -> set[int]:
    """The identities of the insertions that the file has: each one's own statement, the nearest that does the same."""
    scopes = _scopes(seen.original)
    near = []
    for insert in inserts:
        key = settled_key(ast.parse(insert.code.strip()).body[0], _OWN_NAMES)
        for statement in seen.statements:
            if statement.key == key:
                scope = scopes.get((insert.at.lineno, insert.at.col_offset), 0)
                near.append((_distance(insert, statement, scope), insert, statement))
    found: set[int] = set()
    taken: set[Settled] = set()
    for distance, insert, statement in sorted(near, key=lambda each: each[0]):
        anywhere = statement.key.startswith(("wrap", "init", "destroy"))
        if (distance < _OTHER_SCOPE or anywhere) and id(insert) not in found and statement not in taken:
            found.add(id(insert))
            taken.add(statement)
    return found


def _distance(insert: Insert, statement: Settled, scope: int) -> int:
    first, second = (statement.at, insert.at) if insert.where == "before" else (insert.at, statement.at)
    lines = second.lineno - _end(first)
    distance = lines if lines >= 0 else _WRONG_SIDE - lines
    return distance if statement.scope == scope else _OTHER_SCOPE + distance


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _scopes(tree: ast.Module) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}

    def note(node: ast.AST, scope: int) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                found[child.lineno, child.col_offset] = scope
            note(child, child.lineno if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else scope)

    note(tree, 0)
    return found


def settled_key(node: ast.stmt, names: Mapping[str, str]) -> str:
    """What a statement does, if it is one that conversions put in; "" otherwise.

    Args: the statement; what its names of ddpify_runtime mean.
    """
    wrapped = _wrapped(node, names)
    if wrapped:
        return f"wrap {wrapped}"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        name = runtime_name(call.func, names)
        if name in _ALONE:
            return name
        if ast.unparse(call.func) in own_calls():
            return ast.unparse(call)
        inner = call.func
        closes = isinstance(inner, ast.Call) and runtime_name(inner.func, names) == "rank_zero_only"
        if isinstance(inner, ast.Call) and closes and not call.args:
            closed = [ast.unparse(each) for each in inner.args]
            return f"close {closed[0]}" if len(closed) == 1 and closed[0].endswith(".close") else ""
    given_back = node.value if isinstance(node, ast.Assign) else None
    if isinstance(given_back, ast.Call) and runtime_name(given_back.func, names) in ("carried", "restore"):
        return runtime_name(given_back.func, names)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.value.args) == 1:
        given = ast.unparse(node.value.args[0])
        if runtime_name(node.value.func, names) == "broadcast" and ast.unparse(node.targets[0]) == given:
            return f"broadcast {given}"
    return ""


def _wrapped(node: ast.stmt, names: Mapping[str, str]) -> str:
    """The code of the module, or of the collection of modules, that a statement makes distributed; "" for none."""
    if isinstance(node, ast.Expr) and is_wrap(node.value, names):
        return ast.unparse(node.value.args[0])  # type: ignore[attr-defined]
    if isinstance(node, ast.For) and len(node.body) == 1 and not node.orelse:
        inner = node.body[0]
        each = _wrapped(inner, names) if isinstance(inner, ast.Expr) else ""
        return ast.unparse(node.iter) if each and each == ast.unparse(node.target) else ""
    if isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse:
        return "" if isinstance(node.body[0], (ast.For, ast.If)) else _wrapped(node.body[0], names)
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return ""
    target, value = ast.unparse(node.targets[0]), node.value
    if is_wrap(value, names):
        return target if ast.unparse(value.args[0]) == target else ""  # type: ignore[attr-defined]
    if isinstance(value, (ast.ListComp, ast.DictComp)):
        element = value.elt if isinstance(value, ast.ListComp) else value.value
        iterated = ast.unparse(value.generators[0].iter)
        same = iterated in (target, f"{target}.items()", f"{target}.values()")
        return target if same and is_wrap(element, names) else ""
    return ""


def is_wrap(node: ast.expr, names: Mapping[str, str]) -> bool:
    """Whether an expression makes a module distributed."""
    return isinstance(node, ast.Call) and runtime_name(node.func, names) in _WRAPPERS and bool(node.args)


def sharded_class(call: ast.Call, names: Mapping[str, str]) -> ast.keyword | None:
    """Where a call of ddpify_runtime's ZeroRedundancyOptimizer names the optimizer; None for other calls."""
    if runtime_name(call.func, names) != _SHARDED:
        return None
    return next((each for each in call.keywords if each.arg == "optimizer_class"), None)


def called_at_once(call: ast.Call) -> ast.expr | None:
    """What `(lambda: x)()` and `getattr(x, "name")` stand for, as conversions write them; None for other calls."""
    if isinstance(call.func, ast.Lambda) and not call.args and not call.keywords:
        return call.func.body
    if isinstance(call.func, ast.Name) and call.func.id == "getattr" and len(call.args) == 2:
        value, name = call.args
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return ast.copy_location(ast.Attribute(value, name.value, ast.Load()), call)
    return None


class _ConvertedReader(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.samplers: set[str] = set()  # what a person calls those that are made outside of a loader's call
        self.statements: list[Settled] = []
        self.nodes: set[ast.AST] = set()
        self._scope = 0
        self._devices = own_devices()
        self._makers = {device.partition("(")[0].rpartition(".")[2] for device in self._devices}
        self._modules = {RUNTIME, *(name.split(".")[0] for name in own_modules())}

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST] | None:
        if not isinstance(node, ast.stmt):
            return super().visit(node)  # type: ignore[no-any-return]
        key = settled_key(node, self.names)
        if key:
            self.statements.append(Settled(node, key, self._scope))
            return None
        outer = self._scope
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._scope = node.lineno
        if isinstance(node, ast.Assign) and makes_sampler(node.value, self.names):
            self.samplers.update(map(ast.unparse, node.targets))
        seen = super().visit(node)
        self._scope = outer
        return seen  # type: ignore[no-any-return]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == [] and not isinstance(node, ast.Module):
            place = node if isinstance(node, (ast.stmt, ast.ExceptHandler)) else self.statements[-1].at
            node.body = [ast.copy_location(ast.Pass(), place)]  # type: ignore[attr-defined]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if is_wrap(node.value, self.names) and len(node.targets) == 1:  # model = DistributedDataParallel(Net())
            self.statements.append(Settled(node, f"wrap {ast.unparse(node.targets[0])}", self._scope))
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        self._read_sampler(node)
        name = runtime_name(node.func, self.names)
        if node.func in self.nodes and (inner := called_at_once(node)) is not None:
            self.nodes.add(inner)
            return inner
        if name in AROUND and len(node.args) == 1 and {word.arg for word in node.keywords} <= {"wait"}:
            self.nodes.add(node.args[0])
            return node.args[0]
        if is_wrap(node, self.names):
            self.nodes.add(node.args[0])
            return node.args[0]
        if (word := sharded_class(node, self.names)) is not None:
            node.keywords.remove(word)
            node.func = word.value
            self.nodes.update((node, node.func))
            return node
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last in self._makers and ast.unparse(node) in self._devices:
            device = _placed(ast.parse('torch.device("cuda")', mode="eval").body, node)
            self.nodes.update(ast.walk(device))
            return device
        return node

    def _read_sampler(self, node: ast.Call) -> None:
        """Put back what a loader's sampler stands for."""
        self.nodes.update(each.value for each in node.keywords if ast.unparse(each.value) in self.samplers)
        found = named_sampler(node, self.names)
        if found is None:
            return
        self.nodes.add(node)
        if found.shuffle is None:
            node.keywords.remove(found.word)
        else:
            found.word.arg, found.word.value = "shuffle", found.shuffle
        if named := found.named_here:
            node.args = [named.value if each is named else each for each in node.args]
            for word in node.keywords:
                word.value = named.value if word.value is named else word.value

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        names = [each for each in node.names if each.name.split(".")[0] not in self._modules]
        return _placed(ast.Import(names), node) if names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST] | None:
        if node.module != RUNTIME or node.level:
            return node
        found: list[ast.AST] = []
        for alias in node.names:
            if alias.name in TORCH:
                found.append(_placed(ast.ImportFrom(TORCH[alias.name], [alias], 0), node))
        self.nodes.update(found)
        return found


def _placed(new: Located, old: ast.AST) -> Located:
    for node in ast.walk(new):
        ast.copy_location(node, old)
    return new
