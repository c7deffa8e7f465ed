"""Follows expressions: what a value is, and where values that differ between the ranks are read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..inherited import _local as imported_file
from ..script import Script
from .frames import AfterLoop, Found, Frame, Pass, Problem, Reduction, additive, ancestors, local_entries, settled
from .layout import axis, reduced, turned, unsqueezed
from .operations import SHAPE_ATTRIBUTES, combined, element
from .values import (
    ADDITIVE,
    COUPLES,
    DRAWN,
    LOCAL_ROWS,
    SAME,
    ZERO,
    Class,
    Function,
    Instance,
    Items,
    Iteration,
    Kind,
    Library,
    Loader,
    Method,
    Module,
    Parameters,
    Thing,
    Value,
    join,
    made_of,
    of,
    root_of,
)  # fmt: skip

_LIMIT = 300_000  # nodes that are followed in one pass
_BUILTINS = frozenset(
    [
        "print",
        "len",
        "float",
        "int",
        "str",
        "round",
        "abs",
        "min",
        "max",
        "sum",
        "range",
        "enumerate",
        "zip",
        "list",
        "tuple",
        "dict",
        "set",
        "sorted",
        "reversed",
        "isinstance",
        "open",
        "getattr",
        "setattr",
        "hasattr",
        "iter",
        "next",
        "map",
        "filter",
        "any",
        "all",
        "bool",
        "repr",
        "format",
        "super",
        "type",
    ]
)


class TooLarge(Exception):
    """The program has more ways through it than can be followed."""


@dataclass(frozen=True)
class Context:
    """A loop that is being followed: over "batches" of this rank, over "whole" ones, over the "rows" of one."""

    how: str
    loaders: frozenset[Loader]
    node: ast.AST
    frame: Frame


class Expressions:
    """Follows a program; the base of what follows calls and statements."""

    def __init__(
        self,
        scripts: Sequence[Script],
        status: dict[Loader, str],
        trained: set[ast.AST],
        loaders: dict[object, Loader],
        drawn: set[str],
    ) -> None:
        self.scripts, self.status, self.trained, self.drawn = scripts, status, trained, drawn
        self.found = Found()
        self.contexts: list[Context] = []
        self.in_forward: list[Module] = []
        self.stack: list[ast.AST] = []
        self.modules: dict[ast.AST, Module] = {}
        self.classes: dict[ast.ClassDef, Class] = {}
        self.class_attributes: dict[ast.ClassDef, dict[str, Value]] = {}
        self.frames: dict[Script, Frame] = {}
        self.files: dict[Script, Module] = {}
        self.known_loaders = loaders
        self.variant: tuple[object, ...] = ()
        self.wrapped, self.undecided, self.without_gradients = False, 0, 0
        self.frozen: ast.AST | None = None
        self.parts: set[tuple[Module, str]] = set()
        self.work, self.began = 0, False

    @property
    def depth(self) -> int:
        """How many calls of the program's functions are being followed."""
        return len(self.stack)

    def count(self) -> None:
        self.work += 1
        if self.work > _LIMIT:
            raise TooLarge

    # Implemented by what is derived from this

    def call(self, node: ast.Call, frame: Frame, alone: bool = False) -> Value:
        raise NotImplementedError

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, frame: Frame, source: ast.expr | None = None) -> None:
        raise NotImplementedError

    def enter(
        self, function: Function, node: ast.AST, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        raise NotImplementedError

    # Files

    def module_frame(self, script: Script) -> Frame:
        """The names of a file."""
        return self.frames.setdefault(script, Frame(script, script.tree))

    def executed(self, script: Script) -> Frame:
        """The names of a file that is imported."""
        if script not in self.frames:
            self.block(script.tree.body, self.module_frame(script))
        return self.frames[script]

    def local_module(self, name: str) -> Script | None:
        parts = tuple(name.split("."))
        for script in self.scripts:
            path = script.path.parent if script.path.name == "__init__.py" else script.path.with_suffix("")
            if path.parts[-len(parts) :] == parts:
                return script
        return None

    def imported_script(self, script: Script, node: ast.ImportFrom, name: str = "") -> Script | None:
        if name:
            node = ast.ImportFrom(f"{node.module}.{name}" if node.module else name, node.names, node.level)
        return imported_file(script, node, self.scripts)

    def file_value(self, script: Script) -> Value:
        self.executed(script)
        return of(self.files.setdefault(script, Module(script.tree, "file")))

    def module_value(self, script: Script, alias: ast.alias) -> Value:
        return self.file_value(script)

    # Values

    def value(self, node: ast.expr | None, frame: Frame) -> Value:
        """What an expression may hold."""
        self.count()
        if node is None:
            return SAME
        method = getattr(self, f"on_{type(node).__name__.lower()}", None)
        return method(node, frame) if method is not None else self.of_parts(node, frame)

    def of_parts(self, node: ast.expr, frame: Frame) -> Value:
        parts = [self.value(part, frame) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        local = [part for part in parts if part.is_local]
        return made_of("unknown", local) if local else SAME

    def on_constant(self, node: ast.Constant, frame: Frame) -> Value:
        if node.value is None or (node.value in (0, "") and not isinstance(node.value, bool)):
            return Value(zero=True, constant=node.value, host=True)
        return Value(constant=node.value, host=True)

    def on_name(self, node: ast.Name, frame: Frame) -> Value:
        owner = frame.owner(node.id)
        if owner is None:
            qualified = frame.script.qualified(node)
            known = qualified != node.id or node.id in frame.script.imported or node.id in _BUILTINS
            return of(Library(qualified)) if known else SAME
        value = owner.names[node.id]
        if value.pending is not None:
            return self.after_loop(value, owner, node.id, frame)
        return value

    def after_loop(self, value: Value, owner: Frame, name: str, frame: Frame) -> Value:
        """A variable that a loop has added up is read."""
        assert value.pending is not None
        loop, _ = value.pending
        here = frame.statement if owner is frame else owner.statement
        around = list(ancestors(owner.script, here, owner.node)) if here is not None else []
        if loop in around:
            return replace(value, pending=None)
        at = loop
        for parent in ancestors(owner.script, loop, owner.node):
            if parent in around:
                break
            at = parent
        found = additive(value)
        if found is None:
            return replace(value, pending=None)
        if any(context.how == "rows" or self.uneven(context) for context in self.contexts):
            self.problem(frame, loop, f"what it adds up in {name} is read in another loop over data", value.loaders)
        kind, form = found
        loaders = made_of("same", [value]).loaders
        if any(self.status.get(each) == "sharded" for each in loaders) and (
            kind != "sum" or (form in ("list", "tensors") and self.grows(value))
        ):
            what = "a mean over batches" if kind == "mean" else "what is kept of each batch"
            self.problem(
                frame,
                loop,
                f"{name} is {what}, which cannot be added up over ranks that have different batches",
                loaders,
            )
        self.found.after.add(AfterLoop(owner.script, at, name, kind, form))
        owner.names[name] = settled(value)
        return owner.names[name]

    def grows(self, value: Value) -> bool:
        """Whether a list gets an entry for each batch."""
        return any(isinstance(thing, Items) and thing.grows for thing in value.things)

    def on_attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        owner = self.value(node.value, frame)
        return self.attribute_of(owner, node.attr, node, frame)

    def attribute_of(self, owner: Value, name: str, node: ast.expr, frame: Frame) -> Value:
        found: Value | None = None
        for thing in owner.things:
            one = self.attribute_of_thing(thing, name, node, frame)
            if one is not None:
                found = one if found is None else join(found, one)
        if found is not None:
            return found
        parent = frame.script.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return of(Method(owner, name, node))
        if owner.kind in LOCAL_ROWS:
            if name in SHAPE_ATTRIBUTES:
                return SAME
            if name == "shape":
                return self.shape_of(owner)
            if name in ("T", "mT"):
                return made_of(turned(owner.kind) if name == "T" else "rows_moved", [owner])
            return made_of("batch" if owner.kind == "batch" else owner.kind, [owner])
        if owner.is_local:
            return owner if name == "data" else made_of("unknown", [owner]) if name not in SHAPE_ATTRIBUTES else SAME
        return SAME

    def attribute_of_thing(self, thing: Thing, name: str, node: ast.expr, frame: Frame) -> Value | None:
        if isinstance(thing, Library):
            return of(Library(f"{thing.name}.{name}"))
        if isinstance(thing, Module) and isinstance(thing.made, ast.Module):
            other = next(script for script, module in self.files.items() if module is thing)
            return self.frames[other].names.get(name)
        if isinstance(thing, Module | Instance):
            if name in thing.attributes:
                if isinstance(thing, Module) and self.in_forward:
                    self.parts.add((thing, name))
                return thing.attributes[name]
            cls = thing.cls
            if cls is not None:
                method = self.method_of(cls, name, of(thing))
                if method is not None and self.is_property(method):
                    return self.enter(method, node, [], {}, frame)
                if method is not None:
                    return of(method)
                if name in self.class_attributes.get(cls.node, {}):
                    return self.class_attributes[cls.node][name]
            parent = frame.script.parents.get(node)
            called = isinstance(parent, ast.Call) and parent.func is node
            if name == "training" and self.without_gradients and isinstance(thing, Module) and root_of(thing).evaluates:
                return Value(constant=False, host=True)
            if isinstance(thing, Module) and not called and name == "module":
                return of(thing)  # of nn.DataParallel
            if isinstance(thing, Module) and not called:
                return of(Module(node, "", networks=True, parent=thing)) if not thing.name.endswith("Loss") else SAME
            return None
        if isinstance(thing, Loader) and self.status.get(thing) in ("training", "sharded"):
            if name == "batch_size" and self.status[thing] == "training":
                return Value("size", frozenset({thing}), host=True)
            if name in ("sampler", "batch_sampler"):
                return Value("unknown", frozenset({thing}), reason="the sampler of this loader is another one here")
        if isinstance(thing, Class):
            method = self.method_of(thing, name, None)
            if method is not None:
                return of(method)
            return self.class_attributes.get(thing.node, {}).get(name)
        return None

    def is_property(self, method: Function) -> bool:
        decorators = getattr(method.node, "decorator_list", [])
        return any(ast.unparse(each).split(".")[-1] in ("property", "cached_property") for each in decorators)

    def method_of(self, cls: Class, name: str, owner: Value | None) -> Function | None:
        """A method of a class of the program, or of one that it is derived from."""
        for part in cls.node.body:
            if isinstance(part, ast.FunctionDef) and part.name == name:
                is_static = any(ast.unparse(each) == "staticmethod" for each in part.decorator_list)
                return Function(part, cls.script, self.frames.get(cls.script), None if is_static else owner)
        for base in cls.node.bases:
            inner = self.value(base, self.module_frame(cls.script))
            for thing in inner.only(Class):
                assert isinstance(thing, Class)
                if thing is not cls and (found := self.method_of(thing, name, owner)) is not None:
                    return found
        return None

    def class_of(self, node: ast.ClassDef, script: Script) -> Class:
        return self.classes.setdefault(node, Class(node, script))

    def is_module_class(self, cls: Class, depth: int = 5) -> bool:
        """Whether a class is derived from torch.nn.Module."""
        for base in cls.node.bases:
            if cls.script.qualified(base).startswith(("torch.nn.", "torchvision.models")):
                return True
            for thing in self.value(base, self.module_frame(cls.script)).only(Class):
                assert isinstance(thing, Class)
                if depth and thing is not cls and self.is_module_class(thing, depth - 1):
                    return True
        return False

    def on_call(self, node: ast.Call, frame: Frame) -> Value:
        return self.call(node, frame)

    def on_binop(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        if isinstance(node.op, ast.Mod) and (isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)):
            self.shown_parts([node.right], frame)
            return SAME
        kinds = (Items, Parameters)
        if isinstance(node.op, ast.Add) and any(left.only(kind) or right.only(kind) for kind in kinds):
            return join(left, right)
        if isinstance(node.op, ast.Mult) and left.only(Items):
            return left
        host = (left.host or not left.is_local) and (right.host or not right.is_local)
        result = combined(node.op, left, right)
        additive_parts = {left.kind, right.kind} <= {*ADDITIVE, "same"}
        divides = isinstance(node.op, ast.Div) and left.kind in ("sum", "size") and not right.is_local
        if divides and host and any(part in self.found.reductions for part in ast.walk(node.right)):
            self.demand(node.left, left, frame)
            return replace(SAME, host=True)
        if result.kind == "unknown" and host and additive_parts and not self.in_forward:
            self.demand(node.left, left, frame)
            self.demand(node.right, right, frame)
            return replace(SAME, host=True)
        return result

    def on_unaryop(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.Not) and value.is_local:
            self.demand(node.operand, value, frame)
            return SAME
        constant = value.constant
        if isinstance(node.op, ast.Not) and isinstance(constant, bool):
            return Value(constant=not constant, host=True)
        if isinstance(node.op, ast.USub) and isinstance(constant, int | float):
            return replace(value, constant=-constant)
        return replace(value, constant=None, things=frozenset()) if value.is_local else SAME

    def on_compare(self, node: ast.Compare, frame: Frame) -> Value:
        sides = [node.left, *node.comparators]
        values = [self.value(side, frame) for side in sides]
        local = [value for value in values if value.is_local]
        identity = self.compared(node, values)
        if not local or identity.constant is not None:
            return identity
        if any(value.kind in LOCAL_ROWS for value in local) and all(v.kind in LOCAL_ROWS for v in local):
            return made_of("picked" if any(v.kind == "picked" for v in local) else local[0].kind, local)
        for side, value in zip(sides, values, strict=True):
            if value.kind == "size" and not self.in_forward:
                reason = "the size of a batch decides, and ranks round down a batch size that they do not divide"
                self.problem(frame, node, reason, value.loaders)
                return SAME
            self.demand(side, value, frame)
        return SAME

    def compared(self, node: ast.Compare, values: list[Value]) -> Value:
        if len(values) == 2 and isinstance(node.ops[0], ast.Is | ast.IsNot):
            first, second = values
            if second.zero and second.constant is None and isinstance(node.comparators[0], ast.Constant):
                is_none = first.zero and first.constant is None and not first.things and first.host
                known = is_none or bool(first.things) or first.is_local
                if known:
                    return Value(constant=is_none == isinstance(node.ops[0], ast.Is))
        if len(values) == 2 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            one, other = (value.constant for value in values)
            if isinstance(one, str) and isinstance(other, str):
                return Value(constant=(one == other) == isinstance(node.ops[0], ast.Eq))
        return SAME

    def on_boolop(self, node: ast.BoolOp, frame: Frame) -> Value:
        result = SAME
        for part in node.values:
            value = self.value(part, frame)
            if value.constant is isinstance(node.op, ast.Or):
                return value  # the others are not computed
            if value.is_local:
                self.demand(part, value, frame)
            result = join(result, replace(value, kind="same")) if value.things else result
        return replace(result, constant=None)

    def on_ifexp(self, node: ast.IfExp, frame: Frame) -> Value:
        test = self.value(node.test, frame)
        self.decided(node.test, test, frame)
        if isinstance(test.constant, bool):
            return self.value(node.body if test.constant else node.orelse, frame)
        self.undecided += 1
        result = join(self.value(node.body, frame), self.value(node.orelse, frame))
        self.undecided -= 1
        return result

    def on_tuple(self, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Value:
        known: dict[object, Value] = {}
        shape = "tuple" if isinstance(node, ast.Tuple) else "list"
        values = [self.value(part.value if isinstance(part, ast.Starred) else part, frame) for part in node.elts]
        if shape == "tuple":
            known = dict(enumerate(values))
            return of(Items("tuple", known))
        rest: Value | None = None
        for value in values:
            rest = value if rest is None else join(rest, value)
        return replace(of(Items("list", {}, rest)), zero=not values)

    on_list = on_tuple
    on_set = on_tuple

    def on_dict(self, node: ast.Dict, frame: Frame) -> Value:
        items = Items("dict")
        for key, part in zip(node.keys, node.values, strict=True):
            value = self.value(part, frame)
            constant = self.value(key, frame).constant if key is not None else None
            if isinstance(constant, str | int):
                items.known[constant] = value
            else:
                items.rest = value if items.rest is None else join(items.rest, value)
        return replace(of(items), zero=not node.keys)

    def on_subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        owner, key = self.value(node.value, frame), self.key(node.slice, frame)
        if owner.only(Items):
            return element(owner, key)
        index = self.value(node.slice, frame) if not isinstance(node.slice, ast.Slice) else SAME
        if owner.kind == "shape":
            return self.size_in(owner, key)
        if owner.kind in LOCAL_ROWS:
            return self.indexed(owner, node.slice, key, index, frame)
        if owner.kind in ADDITIVE:
            return replace(owner, things=frozenset())
        if owner.is_local or index.is_local:
            if index.kind in LOCAL_ROWS and not owner.is_local:
                return made_of(index.kind, [index])
            return made_of("unknown", [owner, index])
        parameters = owner.only(Parameters)
        return Value(things=frozenset(owner.only(Module)) | frozenset(parameters))

    def shape_of(self, owner: Value) -> Value:
        """The sizes of a tensor; their constant is the dimension of the samples."""
        return replace(made_of("shape", [owner]), constant=axis(owner.kind))

    def size_in(self, shape: Value, key: object) -> Value:
        """One of the sizes of a tensor."""
        if shape.constant is None or not isinstance(key, int):
            return SAME
        return made_of("size", [shape], host=True) if key == shape.constant else SAME

    def indexed(self, owner: Value, slice_: ast.expr, key: object, index: Value, frame: Frame) -> Value:
        """Some of a batch."""
        parts = slice_.elts if isinstance(slice_, ast.Tuple) else [slice_]
        first = parts[0]
        whole = isinstance(first, ast.Slice) and first.lower is None and first.upper is None and first.step is None
        whole = whole or (isinstance(first, ast.Constant) and first.value is ...)
        if isinstance(first, ast.Constant) and first.value is None:
            return made_of(unsqueezed(owner.kind, 0), [owner])
        if axis(owner.kind) != 0:
            return made_of(self.indexed_before(owner, parts, key), [owner])
        if whole:
            return made_of(owner.kind if owner.kind != "batch" else "rows", [owner])
        if index.kind in LOCAL_ROWS:
            return made_of("picked", [owner, index])
        if owner.kind == "batch" and isinstance(key, str | int) and not isinstance(key, bool):
            return made_of("batch", [owner])
        if (
            owner.kind == "batch"
            and key is None
            and not index.is_local
            and len(parts) == 1
            and not isinstance(first, ast.Slice)
        ):
            return made_of("batch", [owner])
        taken = "only some samples of a batch are taken, which are others on each rank"
        fixed = isinstance(first, ast.Slice) or isinstance(key, int)
        return made_of("unknown", [owner, index], reason=COUPLES if self.in_forward and fixed else taken)

    def indexed_before(self, owner: Value, parts: list[ast.expr], key: object) -> Kind:
        """What is left of a tensor whose samples do not lie along its first dimension."""
        if len(parts) > 1:
            return "rows_moved"
        if isinstance(parts[0], ast.Slice):
            return owner.kind
        return reduced(owner.kind, (0,), keeps=False) if isinstance(key, int) else "rows_moved"

    def on_joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Value:
        self.shown_parts([part.value for part in node.values if isinstance(part, ast.FormattedValue)], frame)
        return SAME

    def on_lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return of(Function(node, frame.script, frame))

    def on_namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        self.assign(node.target, value, frame)
        return value

    def on_starred(self, node: ast.Starred, frame: Frame) -> Value:
        return self.value(node.value, frame)

    def on_await(self, node: ast.Await, frame: Frame) -> Value:
        return self.value(node.value, frame)

    def on_listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, frame: Frame) -> Value:
        inner = Frame(frame.script, frame.node, {}, frame, statement=frame.statement)
        if isinstance(node, ast.DictComp) and (known := self.of_constants(node, inner)) is not None:
            return known
        overs: list[Value] = []
        with self.comprehension(node.generators, inner, overs):
            if isinstance(node, ast.DictComp):
                value = self.value(node.value, inner)
                key = self.value(node.key, inner)
                if key.is_local:
                    value = made_of("unknown", [key, value])
            else:
                value = self.value(node.elt, inner)
        if value.only(Parameters):
            return value
        if any(over.kind in LOCAL_ROWS for over in overs) and value.is_local:
            value = made_of(
                "picked" if any(part.ifs for part in node.generators) else "rows", [value, *overs], host=value.host
            )
        return of(Items("dict" if isinstance(node, ast.DictComp) else "list", {}, value))

    def of_constants(self, node: ast.DictComp, frame: Frame) -> Value | None:
        """`{phase: … for phase in ["train", "val"]}`, entry by entry; None for another dict."""
        part = node.generators[0]
        constants = part.iter.elts if isinstance(part.iter, ast.List | ast.Tuple) else []
        keys = [each.value for each in constants if isinstance(each, ast.Constant)]
        if (
            len(node.generators) > 1
            or part.ifs
            or not keys
            or len(keys) < len(constants)
            or not isinstance(node.key, ast.Name)
        ):
            return None
        items = Items("dict")
        for key in keys:
            frame.names = {}
            self.assign(part.target, Value(constant=key, host=True), frame)
            self.variant = (*self.variant, key)
            items.known[key] = self.value(node.value, frame)
            self.variant = self.variant[:-1]
        return of(items)

    on_generatorexp = on_listcomp
    on_setcomp = on_listcomp
    on_dictcomp = on_listcomp

    @contextmanager
    def comprehension(self, parts: list[ast.comprehension], frame: Frame, overs: list[Value]) -> Iterator[None]:
        if not parts:
            yield
            return
        over = self.value(parts[0].iter, frame)
        overs.append(over)
        with self.looping(parts[0], over, frame):
            self.assign(parts[0].target, self.each_of(over, parts[0].iter), frame)
            for test in parts[0].ifs:
                value = self.value(test, frame)
                if value.kind not in LOCAL_ROWS:
                    self.demand(test, value, frame)
            with self.comprehension(parts[1:], frame, overs):
                yield

    # Loops

    def loaders_in(self, *values: Value) -> frozenset[Loader]:
        """The loaders that a loop over some of the values takes batches from."""
        found: set[Loader] = set()
        for value in values:
            for thing in value.things:
                if isinstance(thing, Loader):
                    found.add(thing)
                elif isinstance(thing, Iteration):
                    found |= self.loaders_in(*thing.inner)
        return frozenset(found)

    @contextmanager
    def looping(self, node: ast.AST, over: Value, frame: Frame) -> Iterator[None]:
        """Be in a loop over a value."""
        loaders = self.loaders_in(over)
        rows = self.rows_in(over)
        if loaders:
            self.found.loops.setdefault(node, set()).update(loaders)
            self.found.scripts[node] = frame.script
            for each in loaders:
                self.passed(node, each, frame)
            divided = frozenset(each for each in loaders if self.status.get(each) != "whole")
            if divided and divided != loaders:
                self.problem(frame, node, "the loop runs over divided batches and over whole ones", loaders)
            context: Context | None = Context("batches" if divided else "whole", divided, node, frame)
        else:
            context = Context("rows", rows.loaders, node, frame) if rows is not None else None
        if context is not None:
            self.contexts.append(context)
            self.began = True
        try:
            yield
        finally:
            if context is not None:
                self.contexts.pop()

    def passed(self, node: ast.AST, loader: Loader, frame: Frame) -> None:
        """Note a pass over a training loader, and the loop over epochs that it is in."""
        if self.status.get(loader) != "training":
            return
        here = self.named(loader, frame)
        place: Frame | None = frame
        while place is not None:
            around = ancestors(place.script, place.statement, place.node) if place.statement is not None else ()
            for each in around:
                if isinstance(each, ast.For) and isinstance(each.iter, ast.List | ast.Tuple):
                    continue  # over phases
                if each is not node and isinstance(each, ast.For | ast.While) and each not in self.found.loops:
                    there = self.named(loader, place)
                    self.found.passes.add(Pass(frame.script, node, loader, here, each, there, place.script))
                    return
            place = place.caller
        self.found.passes.add(Pass(frame.script, node, loader, here, None, "", frame.script))

    def named(self, loader: Loader | Module, frame: Frame) -> str:
        """What a loader or a module is called in a function; "" where it has no name."""
        place: Frame | None = frame
        while place is not None:
            for name, value in place.names.items():
                if value.things == frozenset({loader}) or _one_of(loader, value):
                    return name
                for thing in value.only(Items):
                    assert isinstance(thing, Items)
                    for key, entry in thing.known.items():
                        if entry.things == frozenset({loader}) and isinstance(key, str):
                            return f'{name}["{key}"]'
            place = place.outer
        for thing in frame.this.things if frame.this is not None else ():
            for name, value in thing.attributes.items() if isinstance(thing, Instance) else ():
                if value.things == frozenset({loader}) or _one_of(loader, value):
                    return f"self.{name}"
                for inner in value.only(Items):
                    assert isinstance(inner, Items)
                    for key, entry in inner.known.items():
                        if entry.things == frozenset({loader}) and isinstance(key, str):
                            return f'self.{name}["{key}"]'
        return ""

    def rows_in(self, over: Value) -> Value | None:
        """What a loop runs over, if its length depends on this rank's samples."""
        if over.is_local:
            return over
        for thing in over.only(Iteration):
            assert isinstance(thing, Iteration)
            for inner in thing.inner:
                if (thing.how in ("pairs", "keys") and inner.kind == "batch") or inner.only(Items):
                    continue
                if (found := self.rows_in(inner)) is not None:
                    return found
        return None

    def in_rows(self) -> bool:
        return any(context.how == "rows" for context in self.contexts)

    def row_value(self) -> Value:
        """Something that depends on the samples of the loop that is being followed."""
        return next(Value("rows", context.loaders) for context in self.contexts if context.how == "rows")

    def uneven(self, context: Context) -> bool:
        """Whether the ranks may go through a loop unequally often."""
        return any(self.status.get(each) == "sharded" for each in context.loaders)

    def counted(self, context: Context) -> Value:
        """A number that counts the turns of a loop over a rank's part of an evaluation."""
        return Value("unknown", context.loaders, reason="it counts the batches of this rank")

    def each_of(self, over: Value, node: ast.expr) -> Value:
        """What a loop variable takes."""
        found: Value | None = None
        for thing in over.things:
            one = self.each_of_thing(thing, node)
            found = one if found is None else join(found, one)
        if found is not None:
            return found
        if over.kind in LOCAL_ROWS:
            return made_of("rows", [over])
        return made_of("unknown", [over]) if over.is_local else SAME

    def each_of_thing(self, thing: Thing, node: ast.expr) -> Value:
        if isinstance(thing, Loader):
            if self.status.get(thing) == "whole":
                return SAME
            return Value("batch", frozenset({thing}))
        if isinstance(thing, Iteration):
            parts = [self.each_of(inner, node) for inner in thing.inner]
            if thing.how == "enumerate":
                loaders = self.loaders_in(*thing.inner)
                sharded = frozenset(each for each in loaders if self.status.get(each) == "sharded")
                number = Value("unknown", sharded, reason="it counts the batches of this rank") if sharded else SAME
                return of(Items("tuple", {0: number, 1: parts[0]}))
            if thing.how == "zip":
                return of(Items("tuple", dict(enumerate(parts))))
            if thing.how == "keys":
                return SAME
            if thing.how == "pairs":
                inner = (
                    element(thing.inner[0], None)
                    if thing.inner[0].only(Items)
                    else made_of(thing.inner[0].kind, [thing.inner[0]])
                )
                return of(Items("tuple", {0: SAME, 1: inner}))
            if thing.how == "entries":
                return element(thing.inner[0], None)
            return parts[0]
        if isinstance(thing, Items):
            if thing.shape == "dict":
                return SAME
            return element(of(thing), None)
        if isinstance(thing, Parameters):
            return of(thing)
        return SAME

    # Reading

    def key(self, node: ast.expr, frame: Frame) -> object:
        """A constant key; a slice; None for what only the run knows."""
        if isinstance(node, ast.Slice):
            return slice(None)
        constant = self.value(node, frame).constant if not isinstance(node, ast.Tuple) else None
        return constant if isinstance(constant, str | int) else None

    def part(self, value: Value, key: object) -> Value:
        """What a target of an assignment takes of a value, or a dict has under a key."""
        if value.only(Items):
            return element(value, key)
        if value.kind in LOCAL_ROWS:
            return made_of("batch", [value])
        if value.kind == "shape":
            return self.size_in(value, key)
        if value.is_local:
            return made_of("unknown", [value])
        return Value(things=frozenset(value.only(Module)) | frozenset(value.only(Parameters)))

    def freezes(self, owner: Value, node: ast.AST) -> None:
        """Parameters are frozen or unfrozen."""
        modules = [thing for thing in owner.things if isinstance(thing, Module)] + list(self.parameters_in([owner]))
        if self.wrapped and not self.in_forward and any(root_of(each).made in self.trained for each in modules):
            self.frozen = node

    def demand(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """Something is decided or computed of a number that has to be the same on all ranks."""
        if value.things and not value.is_local and local_entries(value):
            found = additive(value)
            value = made_of(
                found[0] if found else "unknown", [value], reason="" if found else "it holds numbers of this rank"
            )
        if not value.is_local:
            self.found.read_same.add(node)
            return
        sharded = [each for each in value.loaders if self.status.get(each) == "sharded"]
        if sharded and value.kind in ("mean", "size"):
            value = replace(value, kind="unknown", reason="a mean over batches, which are others on each rank")
        if self.in_forward:
            self.problem(frame, node, "the model decides or computes here by the samples of its batch", value.loaders)
        elif value.kind not in ADDITIVE:
            reason = value.reason or "it holds samples of this rank alone"
            self.problem(frame, node, f"`{ast.unparse(node)}` is read here: {reason}", value.loaders)
        elif any(context.how == "rows" or self.uneven(context) for context in self.contexts):
            self.problem(
                frame,
                node,
                f"`{ast.unparse(node)}` is read here, where the ranks are at different places",
                value.loaders,
            )
        else:
            self.found.scripts[node] = frame.script
            self.found.reductions.setdefault(node, set()).add(Reduction(frame.script, node, value.kind))

    def decided(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """A branch is taken by a value."""
        if value.is_local:
            self.demand(node, value, frame)

    def problem(self, frame: Frame, node: ast.AST, reason: str, loaders: frozenset[Loader] = frozenset()) -> None:
        self.found.problems.append(Problem(frame.script, node, reason, loaders))

    def problem_of(self, value: Value, reason: str) -> None:
        for loader in self.loaders_in(value):
            self.found.problems.append(Problem(loader.script, loader.call, reason, frozenset({loader})))

    def is_shown(self, node: ast.Call, frame: Frame) -> bool:
        return False

    def shown(self, node: ast.Call, frame: Frame) -> None:
        """A call shows or writes what it is given."""
        changes = self.name_of(node.func).endswith("_")
        self.shown_parts([*node.args, *(word.value for word in node.keywords)], frame, changes)

    def shown_parts(self, parts: Sequence[ast.expr], frame: Frame, changes: bool = False) -> None:
        """Values are shown or written; changes: something that all ranks have is changed by them."""
        for part in parts:
            inner = part.value if isinstance(part, ast.Starred) else part
            if isinstance(inner, ast.Tuple | ast.List | ast.Set):
                self.shown_parts(inner.elts, frame, changes)
            elif isinstance(inner, ast.Dict):
                self.shown_parts(inner.values, frame, changes)
            else:
                value = self.value(inner, frame)
                self.strings(value, inner, frame)
                if changes or value.reason != DRAWN:
                    self.demand(inner, value, frame)

    def strings(self, value: Value, node: ast.expr, frame: Frame) -> None:
        """Follow what an object of the program says of itself."""
        for thing in [
            *value.only(Instance),
            *(e for i in value.only(Items) if isinstance(i, Items) for v in i.all() for e in v.only(Instance)),
        ]:
            assert isinstance(thing, Instance)
            for name in ("__str__", "__repr__", "__format__"):
                method = self.method_of(thing.cls, name, of(thing))
                if method is not None:
                    self.enter(method, node, [SAME] if name == "__format__" else [], {}, frame)
                    break

    def name_of(self, node: ast.expr) -> str:
        return ast.unparse(node)

    def reading(self) -> None: ...

    def parameters_in(self, values: Sequence[Value]) -> tuple[Module, ...]:
        """The modules whose parameters are among the values."""
        found: dict[Module, None] = {}
        waiting = list(values)
        seen: set[int] = set()
        while waiting:
            value = waiting.pop()
            for thing in value.things:
                if isinstance(thing, Parameters):
                    found |= dict.fromkeys(thing.modules)
                elif isinstance(thing, Items) and id(thing) not in seen:
                    seen.add(id(thing))
                    waiting += thing.all()
                elif isinstance(thing, Iteration):
                    waiting += thing.inner
        return tuple(found)

    def loader(self, node: ast.Call, frame: Frame) -> Value:
        """A DataLoader is made."""
        found = self.known_loaders.setdefault((node, self.variant), Loader(node, frame.script, self.variant))
        self.found.loaders.add(found)
        named = [word.value for word in node.keywords if word.arg == "dataset"]
        for part in (*node.args, *(word.value for word in node.keywords)):
            value = self.value(part, frame)
            if part in (*node.args[:1], *named):
                old = self.found.datasets.get(node)
                self.found.datasets[node] = value if old is None else join(old, value)
        return of(found)


def _one_of(module: Loader | Module, value: Value) -> bool:
    """Whether a name holds a module, or another in its place."""
    return module in value.things and all(isinstance(each, Module) for each in value.things)


_ = (ZERO,)
