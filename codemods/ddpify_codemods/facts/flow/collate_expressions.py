"""What the expressions of a collate function hold: each sample alone, or something that couples them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from ..bindings import bindings
from ..script import Script
from .collate_lengths import CollateLengths
from .collate_parts import (
    COLUMNS,
    JOINS,
    STACKS,
    Keyed,
    Kind,
    Laid,
    Part,
    Unclear,
    either,
    flat,
    is_stacked,
    is_zero,
    of_one,
    unclear,
)
from .concatenated import Concatenated, Offsets, offsets
from .encodings import NAMES, is_encoding
from .lengthened import Behind, Lengthened
from .padding import Padded, compared, padded_by, pads, turned
from .said_there import binder_of, defaults
from .values import Function

_LISTS = frozenset({"list", "tuple"})
_ROW_BY_ROW = frozenset(
    {"to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "bool", "astype", "clone", "copy"}
    | {"cuda", "cpu", "contiguous", "detach", "pin_memory", "numpy", "add", "sub", "mul", "div", "clamp"}
    | {"add_", "sub_", "mul_", "div_", "clamp_", "requires_grad_"}
)
_OF_ANY_TYPE = frozenset({"to", "float", "long", "int", "contiguous", "clone", "detach", "cuda", "cpu", "pin_memory"})
_KEEPS = frozenset({"append", "extend", "insert", "add", "update", "setdefault", "appendleft", "push"})
_OF_A_TYPE = frozenset({"dtype", "device", "ndim", "dim", "keys"})
_DRAWS = ("numpy.random.", "torch.rand", "torch.normal", "torch.multinomial", "torch.bernoulli", "torch.poisson")
_COMPUTES = ("torch.", "numpy.", "math.")
_BUILT_IN = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "range", "round", "slice", "str"})
ENCODED: Part = ("stacked", "stacked")  # what a tokenizer gives


class CollateExpressions(CollateLengths):
    """Follows expressions; whatever is not known to keep samples apart ends it (`Unclear`).

    names: what each local name holds. local: those that are assigned anywhere. batch: the name of all samples, which
    may be sorted. codes: what names stand for in the words of the collate function. in_turn: in a loop over samples.
    """

    def __init__(
        self,
        function: Function,
        names: dict[str, Part],
        local: set[str],
        depth: int,
        batch: str,
        codes: Mapping[str, ast.expr],
        outer: Function,
    ) -> None:
        self.function, self.script, self.outer = function, function.script, outer
        self.names, self.local, self.depth, self.batch = names, local, depth, batch
        self.codes, self.in_turn = dict(codes), False
        self.filling: set[ast.stmt] = set()  # loops that fill tensors with padded samples
        self.by_column: set[ast.expr] = set()  # what makes something of each of several columns

    def given_back(self, function: Function, names: dict[str, Part], codes: Mapping[str, ast.expr]) -> Part:
        """What a function that is called gives back for arguments."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Part) -> None:
        """Give a name, or a part of what one holds, a value."""
        if isinstance(target, ast.Name):
            self.names[target.id] = "one" if value == "new" and self.in_turn else value
            self.codes.pop(target.id, None)
        elif isinstance(target, ast.Tuple | ast.List):
            if isinstance(value, tuple) and len(value) != len(target.elts):
                raise Unclear
            each = value if isinstance(value, tuple) else [_unpacked(value)] * len(target.elts)
            for part, one in zip(target.elts, each, strict=True):
                self.assign(part, one)
        elif isinstance(target, ast.Attribute | ast.Subscript):
            owner = self.part(target.value)
            if isinstance(owner, tuple) and isinstance(target.value, ast.Name) and not self.in_turn:
                self.names[target.value.id] = (*owner, value)
            elif not (owner == "one" and of_one(value)):
                raise Unclear
        else:
            raise Unclear

    def named(self, name: str) -> Part:
        """What a name holds."""
        if name in self.names:
            return self.names[name]
        if name in self.local:
            raise Unclear
        return "same"

    def part(self, node: ast.expr) -> Part:
        """What an expression holds."""
        if isinstance(node, ast.Constant):
            return "same"
        if isinstance(node, ast.Name):
            return self.named(node.id)
        if isinstance(node, ast.Tuple | ast.List):
            if not node.elts and isinstance(node, ast.List):
                return "new"
            return tuple(self.part(each) for each in node.elts)
        if isinstance(node, ast.Dict):
            keys = [each.value for each in node.keys if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            parts = [self.part(each) for each in node.values]
            return Keyed(keys, parts) if len(keys) == len(parts) else tuple(parts)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Subscript):
            return self.entry(node)
        if isinstance(node, ast.Attribute):
            owner = self.part(node.value)
            if owner == "first" and node.attr in _OF_A_TYPE:
                return "same"
            if owner == ENCODED and node.attr in NAMES:
                return "stacked"
            return owner if owner in ("same", "one") else unclear()
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return self.comprehension(node.generators, node.elt)
        if isinstance(node, ast.DictComp):
            found = self.comprehension(node.generators, node.value)
            return found if found == "stacked" else self.computed([found])
        if isinstance(node, ast.IfExp):
            test, chosen = self.part(node.test), either(self.part(node.body), self.part(node.orelse))
            return chosen if test == "same" else self.computed([test, *flat(chosen)])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return "one" if of_one(self.part(node.left)) and of_one(self.part(node.right)) else unclear()
        if isinstance(node, ast.Compare) and isinstance(padded := self.part(node.left), Padded):
            other = self.code_of(node.comparators[0])
            known = other is not None and self.part(node.comparators[0]) == "same"
            mask = compared(padded, other, node.ops[0]) if other is not None and known else None
            return mask if mask is not None and len(node.ops) == 1 else unclear()
        if isinstance(node, ast.BinOp):
            left, right = self.part(node.left), self.part(node.right)
            number = self.number(node, left, right)
            return number if number is not None else self.computed([left, right])
        if isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.JoinedStr | ast.FormattedValue):
            return self.computed([self.part(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)])
        raise Unclear

    def computed(self, parts: Iterable[Part]) -> Part:
        """What is computed from parts, element by element."""
        found = list(parts)
        if all(map(of_one, found)):
            return "one" if any("one" in flat(part) for part in found) else "same"
        if found.count("stacked") == 1 and set(found) <= {"same", "stacked"}:
            return "stacked"
        raise Unclear

    def entry(self, node: ast.Subscript) -> Part:
        owner = self.part(node.value)
        if isinstance(owner, tuple):
            return owner[0] if len(set(owner)) == 1 else unclear()
        if owner in ("same", "one"):
            within = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            bounds = [
                bound
                for each in within
                for bound in ([each.lower, each.upper, each.step] if isinstance(each, ast.Slice) else [each])
            ]
            return self.computed([owner, *(self.part(each) for each in bounds if each is not None)])
        if owner in COLUMNS and isinstance(node.slice, ast.Name) and self.part(node.slice) == "place":
            return "one"
        if not isinstance(node.slice, ast.Constant) and not (owner == "first" and self.part(node.slice) == "same"):
            raise Unclear
        if owner == "columns":
            return "column"
        return "first" if owner in ("first", "column") else unclear()

    def takes(self, target: ast.expr, over: Part) -> None:
        """What a loop over samples takes has a name."""
        if over != "numbered":
            self.assign(target, "one")
        elif isinstance(target, ast.Tuple) and len(target.elts) == 2:
            self.assign(target.elts[0], "place")
            self.assign(target.elts[1], "one")
        else:
            raise Unclear

    def comprehension(self, generators: list[ast.comprehension], element: ast.expr) -> Part:
        if len(generators) != 1 or generators[0].ifs or generators[0].is_async:
            raise Unclear
        target, over = generators[0].target, self.part(generators[0].iter)
        local = self.local - {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
        names, stores = dict(self.names), local | stored(element)
        inner = type(self)(self.function, names, stores, self.depth, "", self.codes, self.outer)
        inner.in_turn, inner.descending = self.in_turn, self.descending
        if (over in COLUMNS or over == "numbered") and not self.in_turn:
            inner.in_turn = True
            inner.takes(target, over)
            each = inner.part(element)
            if isinstance(each, Lengthened) and not each.of_all:
                return replace(each, of_all=True)
            if not of_one(each):
                raise Unclear
            return (
                "opened"
                if _is_opened(self.script, element) or (over == "opened" and isinstance(element, ast.Name))
                else "column"
            )
        if over == "first" and not looks_up(target, [element]):
            raise Unclear
        if over not in ("columns", "same", "one", "first"):
            raise Unclear
        self.by_column |= {element} if over == "columns" else set()
        inner.assign(target, "column" if over == "columns" else "one" if over == "one" else "same")
        each = inner.part(element)
        return "columns" if each == "column" else "stacked" if is_stacked(each) else self.computed([each])

    def known_name(self, function: ast.expr) -> str:
        """The full name of a function, unless it is one of the script's own, which may have the name of another."""
        name = self.script.qualified(function)
        own = {getattr(each, "name", "") for each in self.script.tree.body} | bindings(
            self.script, self.script.tree
        ).keys()
        return "" if name in own else name

    def call(self, node: ast.Call) -> Part:
        name = self.known_name(node.func)
        if name.startswith(("random.", *_DRAWS)) or any(word.arg in (None, "out") for word in node.keywords):
            raise Unclear
        starred = [self.part(each.value) for each in node.args if isinstance(each, ast.Starred)]
        if starred:
            return "columns" if name == "zip" and len(node.args) == 1 and starred == ["column"] else unclear()
        if name in ("sorted", "map") and node.args:
            return self.sorted(node) if name == "sorted" else self.mapped(node)
        if (begins := offsets(self.script, self.script.scope(node), node)) is not None:
            return begins if self.named(begins.samples) in ("column", Concatenated(begins.samples)) else unclear()
        if not node.keywords and _lays_out(node) and self.part(node.func.value) == "stacked":  # type: ignore[attr-defined]
            return "stacked"
        args = [self.part(each) for each in node.args]
        words = {str(word.arg): self.part(word.value) for word in node.keywords}
        first: Part = args[0] if args else "new"
        if (longer := self.lengthened(name, node, args, words)) is not None:
            return longer
        if name == "enumerate" and args == ["column"] and not words:
            return "numbered"
        if name == "dict" and words and not args:
            return Keyed(words, words.values())
        if is_encoding(self.script, node) and COLUMNS[0] in args and {*args} <= {"same", "column"}:
            return ENCODED
        if name in _LISTS and len(args) <= 1:
            return first
        if name == "zip" and args and set(args) <= set(COLUMNS):
            return "column"
        if name in ("isinstance", "type") and first in ("same", "first"):
            return "same"
        along = [*node.args[1:], *(word.value for word in node.keywords if word.arg in ("dim", "axis"))]
        if name in STACKS and first in ("column", "stacked"):
            return "stacked" if not name.endswith("stack") or all(map(is_zero, along)) else unclear()
        if name in JOINS and first == "opened":
            return "stacked" if all(map(is_zero, along)) else unclear()
        if name in JOINS and first == "column" and name.startswith("torch.") and isinstance(node.args[0], ast.Name):
            return Concatenated(node.args[0].id) if all(map(is_zero, along)) else unclear()
        module, _, last = name.rpartition(".")
        if module == "torch" and first == "stacked" and _leaves_rows(last, node.args[1:], node.keywords):
            return "stacked"
        if name == "torch.nn.functional.one_hot" and first == "stacked":
            return "stacked" if len(args) > 1 or words else unclear()  # as many as the largest label, otherwise
        settings = [*args, *(part for key, part in words.items() if key != "sequences")]
        padded = settings.pop(0) if args else words.get("sequences")
        if pads(name) and padded == "column" and set(settings) <= {"same"}:
            return padded_by(node, self.code_of) or unclear()
        nodes: dict[int | str, ast.expr] = {str(word.arg): word.value for word in node.keywords}
        return self.called(node.func, args, words, {**nodes, **dict(enumerate(node.args))})

    def sorted(self, node: ast.Call) -> Part:
        """`sorted(batch, key=…)`: all samples, in an order that is free."""
        to = self.script.parents.get(node)
        target = to.targets[0] if isinstance(to, ast.Assign) else None
        batch = node.args[0]
        if not isinstance(batch, ast.Name) or len(node.args) > 1 or not self.is_untouched(batch.id):
            raise Unclear
        self.descending, self.batch = is_descending(node), target.id if isinstance(target, ast.Name) else ""
        if self.batch != batch.id:
            self.names[batch.id] = "unordered"
            self.local.add(batch.id)
        return "column"

    def is_untouched(self, name: str) -> bool:
        """Whether a name is that of all samples, of which nothing has been taken yet: their order is free."""
        others = {part for each, part in self.names.items() if each != name}
        return name == self.batch and not self.in_turn and others <= {"same", "new", "count"}

    def mapped(self, node: ast.Call) -> Part:
        """`map(function, …)`."""
        over = [self.part(each) for each in node.args[1:]]
        if self.in_turn:
            raise Unclear
        name = self.known_name(node.args[0])
        if over == ["columns"]:
            self.by_column.add(node)
            return "columns" if name in _LISTS else "stacked" if name in STACKS else unclear()
        return "column" if over == ["column"] and of_one(self.called(node.args[0], ["one"], {})) else unclear()

    def called(
        self,
        function: ast.expr,
        given: list[Part],
        words: Mapping[str, Part],
        nodes: Mapping[int | str, ast.expr] = MappingProxyType({}),
    ) -> Part:
        """What a function makes of its arguments; nodes: these, by place and by name."""
        name = self.known_name(function)
        kinds: set[Kind | Laid] = {kind for part in (*given, *words.values()) for kind in flat(part)}
        if isinstance(function, ast.Lambda):
            names = {**self.names, **dict(zip(parameters(function), given, strict=False))}
            codes = {each: code for each, code in self.codes.items() if each not in parameters(function)}
            inner = replace(self.function, node=function)
            return self.given_back(inner, names, codes | self.codes_in(function, nodes))
        if isinstance(function, ast.Attribute) and not name.startswith(_COMPUTES):
            return self.method(function, given, kinds)
        if isinstance(function, ast.Name) and self.named(function.id) != "same":
            raise Unclear
        if kinds <= {"same"}:  # it may draw, or count its calls
            return "same" if name.startswith(_COMPUTES) or name in _BUILT_IN else unclear()
        if kinds <= {"same", "one"}:
            return "one"
        own, several = own_function(self.script, function), {*COLUMNS, "columns", "stacked"} & kinds
        if own is None or self.depth < 1 or (self.in_turn and several) or len(given) > len(parameters(own)):
            raise Unclear
        if binder_of(self.script, self.function.node, own.name) is not self.script.tree:
            raise Unclear
        known: dict[str, Part] = dict.fromkeys(parameters(own), "same")
        known |= {**dict(zip(known, given, strict=False)), **words}
        return self.given_back(Function(own, self.script), known, self.codes_in(own, nodes))

    def codes_in(
        self, function: ast.FunctionDef | ast.Lambda, nodes: Mapping[int | str, ast.expr]
    ) -> dict[str, ast.expr]:
        """What the parameters of a function stand for that is called."""
        codes: dict[str, ast.expr | None] = {**defaults(function)}
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        for place, node in nodes.items():
            name = place if isinstance(place, str) else names[place] if place < len(names) else ""
            codes[name] = self.code_of(node)
        return {name: code for name, code in codes.items() if code is not None}

    def method(self, function: ast.Attribute, given: list[Part], kinds: set[Kind | Laid]) -> Part:
        """What a method makes of its arguments, and of what has it."""
        owner, name = self.part(function.value), function.attr
        if owner == "first" and name in _OF_A_TYPE and not given:
            return "same"
        if isinstance(owner, Padded) and kinds <= {"same"}:
            return self.of_padded(owner, function)
        if (owner == "stacked" and name == "max" and not given) or (owner == "longest" and name == "item"):
            return "longest"
        if isinstance(owner, Lengthened | Behind) and kinds <= {"same"} and name in _OF_ANY_TYPE:
            return owner
        if isinstance(owner, Concatenated | Offsets) and kinds <= {"same"} and name in _OF_ANY_TYPE:
            return owner
        if owner == "stacked" and kinds <= {"same"} and (name in _ROW_BY_ROW or _keeps_rows(self.script, function)):
            return "stacked"
        if owner == "one" and kinds <= {"same", "one"}:
            return "one"
        if owner == "same" and kinds <= {"same", "one"} and "one" in kinds:  # a transform, which must not keep it
            return unclear() if name in _KEEPS or name.endswith("_") else "one"
        raise Unclear

    def of_padded(self, padded: Padded, function: ast.Attribute) -> Part:
        """What a method makes of padded samples."""
        call = self.script.parents.get(function)
        places = [ast.unparse(each) for each in call.args] if isinstance(call, ast.Call) else []
        if function.attr in _OF_ANY_TYPE:
            return padded
        exchanges = function.attr == "t" or (function.attr == "transpose" and sorted(places) == ["0", "1"])
        if exchanges and not padded.also:
            return turned(padded)
        raise Unclear


def own_function(script: Script, called: ast.expr) -> ast.FunctionDef | None:
    """The function of a file that a name stands for there, whatever runs; None for others, and where there may be
    several."""
    name = called.id if isinstance(called, ast.Name) else ""
    defined = [each for each in script.tree.body if isinstance(each, ast.FunctionDef) and each.name == name]
    return defined[0] if len(defined) == 1 and name not in bindings(script, script.tree) else None


def with_helpers(script: Script, function: ast.AST, depth: int = 3) -> Iterator[ast.AST]:
    """A function, and those of its file that it calls."""
    yield function
    for call in (each for each in ast.walk(function) if isinstance(each, ast.Call)):
        found = own_function(script, call.func)
        if found is not None and depth:
            yield from with_helpers(script, found, depth - 1)


def is_descending(node: ast.Call) -> bool:
    """Whether samples are sorted so that the largest by some number comes first."""
    return any(word.arg == "reverse" and ast.unparse(word.value) == "True" for word in node.keywords)


def _unpacked(part: Part) -> Part:
    """What each of several names holds to which a part is unpacked."""
    if part == "columns":
        return "column"
    return part if part in ("same", "one", "first") else unclear()


def parameters(function: ast.FunctionDef | ast.Lambda) -> list[str]:
    given = function.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def stored(node: ast.AST) -> set[str]:
    """The names that are assigned in a part of a function, but for those of its comprehensions."""
    inner = {part for each in ast.walk(node) if isinstance(each, ast.comprehension) for part in ast.walk(each.target)}
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each not in inner
    }


def looks_up(target: ast.expr, parts: Iterable[ast.AST]) -> bool:
    """Whether a name stands for keys alone: `sample[key]`, `{key: …}`."""
    if not isinstance(target, ast.Name):
        return False
    nodes = [each for part in parts for each in ast.walk(part)]
    keys = [each.slice for each in nodes if isinstance(each, ast.Subscript)]
    return all(each in keys for each in nodes if isinstance(each, ast.Name) and each.id == target.id)


def _is_opened(script: Script, node: ast.expr) -> bool:
    """`x.unsqueeze(0)`, `torch.unsqueeze(x, dim=0)`, `x[None]`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        along = [*node.args, *(word.value for word in node.keywords if word.arg == "dim")]
        given = along[1:] if script.qualified(node.func) == "torch.unsqueeze" else along
        one = len(given) == 1 and len(along) == len(node.args) + len(node.keywords)
        return node.func.attr == "unsqueeze" and one and is_zero(given[0])
    if not isinstance(node, ast.Subscript):
        return False
    at = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    return isinstance(at, ast.Constant) and at.value is None


def _lays_out(call: ast.Call) -> bool:
    """Whether a method lays out each row anew: `x.view(len(x), x.size(1), -1)`, `x.flatten(1)`."""
    method = call.func
    if not isinstance(method, ast.Attribute) or not call.args:
        return False
    first, others = ast.unparse(call.args[0]), [ast.unparse(each) for each in call.args[1:]]
    if method.attr == "flatten":
        return first == "1" and not others
    of = ast.unparse(method.value)
    counts = first in (f"{of}.shape[0]", f"{of}.size(0)", f"len({of})")
    own = re.compile(rf"-?\d+|{re.escape(of)}\.(?:shape\[[1-9]\]|size\([1-9]\))")  # the same for all batches
    return method.attr in ("view", "reshape") and counts and all(map(own.fullmatch, others))


def _keeps_rows(script: Script, method: ast.Attribute) -> bool:
    """Whether a method that is given a dimension leaves the first one where it is."""
    call = script.parents.get(method)
    return isinstance(call, ast.Call) and _leaves_rows(method.attr, call.args, call.keywords)


def _leaves_rows(name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> bool:
    """Whether a method or a function that is given a dimension, or what follows on which, leaves the first one where it
    is: `x.unsqueeze(1)`, `torch.unsqueeze(x, dim=1)`, `x.permute(0, 2, 1)`."""
    words = [word.value for word in keywords if word.arg in ("dim", "dims")]
    given = [*args, *words]
    if len(words) != len(keywords) or not given or (words and len(given) > 1):
        return False
    first = given[0]
    if name == "permute":
        order = first.elts if isinstance(first, ast.Tuple | ast.List) else given
        return bool(order) and is_zero(order[0])
    if name == "unsqueeze" and ast.unparse(first) == "-1":
        return True
    at = first.value if isinstance(first, ast.Constant) else None
    return name in ("unsqueeze", "squeeze") and type(at) is int and at > 0
