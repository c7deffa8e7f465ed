"""Follows methods that change a tensor in place: `real.resize_(images.size()).copy_(images)`.

`real.data.resize_(…)` changes the size of what `real.data` gives, and not that of `real`:
a rank's part of a batch would fill the first rows of it.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ..bindings import names_in
from .draws import DRAWING
from .frames import Frame
from .libraries import Libraries
from .operations import of_sizes
from .shared_memory import goes_by_two_names
from .values import ADDITIVE, COUPLES, DRAWN, LOCAL_ROWS, OWN_SHAPE, SAME, Items, Method, Value, cut, join, made_of

OTHER_NAME = "`{}` is changed in place, and goes by another name, too"
_OTHERWISE = frozenset({"requires_grad_", "share_memory_", "sum_", "mean_"})


class InPlace(Libraries):
    """What becomes of the names of tensors that are changed."""

    def filled(self, method: Method, node: ast.Call, args: list[Value]) -> Value | None:
        """What a tensor holds that is given another size, or filled anew; None for other changes."""
        owner, name = method.owner, method.name
        if owner.things:
            return None
        of_data = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Attribute)
        if of_data and name.startswith("resize_") and node.func.value.attr == "data":  # type: ignore[attr-defined]
            local = [each for each in args if each.is_local]
            return made_of("unknown", local, reason=OWN_SHAPE) if local else None  # the tensor itself keeps its size
        if name == "resize_as_" and args and args[0].kind in LOCAL_ROWS:
            return cut(made_of(args[0].kind, [args[0]]))
        if name == "resize_":
            local = [each for each in args if each.is_local]
            made = of_sizes(args)
            same = replace(SAME, reason=OWN_SHAPE if self.is_of_own_size(node) else "")
            return made or (made_of("unknown", local, reason=OWN_SHAPE) if local else same)
        if name == "copy_" and args and args[0].kind in LOCAL_ROWS:
            if owner.kind not in LOCAL_ROWS:
                return made_of("unknown", args[:1], reason=OWN_SHAPE)
            return made_of(args[0].kind, args[:1])
        if name in DRAWING and not owner.is_local and "torch" in self.began & self.drawn:
            return Value("unknown", reason=DRAWN)
        return None

    def detached(self, method: Method, node: ast.Call, frame: Frame) -> Value | None:
        """What `out.detach_()` leaves of a tensor: what `out.detach()` gives; None where it may have another name, too,
        by which gradients would still be taken for passing through it."""
        owner = method.owner
        if owner.things or owner.kind not in (*LOCAL_ROWS, *ADDITIVE) or not isinstance(node.func, ast.Attribute):
            return None
        value, tensor = cut(owner), node.func.value
        if value == owner or isinstance(tensor, ast.Call):
            return value
        if not isinstance(tensor, ast.Name) or has_another_name(tensor, node, frame):
            return None
        self.name_changed(tensor, node, owner, value, frame)
        return value

    def changed(self, node: ast.Call, owner: Value, value: Value, frame: Frame) -> None:
        """A tensor is another one afterwards; value: what it is then."""
        assert isinstance(node.func, ast.Attribute)
        root = root_of_tensor(node.func.value)
        known = value.loaders <= owner.loaders and value.forwards <= owner.forwards
        part = isinstance(root, ast.Subscript) and value.kind == "unknown"  # of something that is known itself
        if (owner.kind, owner.reason) == (value.kind, value.reason) and known and not part:
            return
        if isinstance(root, ast.Name):
            self.name_changed(root, node, owner, value, frame)
        elif isinstance(root, ast.Attribute):
            self.assign(root, value, frame)
        elif isinstance(root, ast.Subscript) and isinstance(root.value, ast.Name):
            whole = self.value(root.value, frame)
            both = [whole, value]
            self.name_changed(root.value, node, whole, made_of("unknown", both, reason=value.reason), frame)

    def takes_one(self, root: ast.Name, frame: Frame) -> bool:
        """Whether a name stands for a part of what a loop runs over, `for row in x: row.mul_(w)`: that changes, too."""
        stores = frame.script.stores.get((frame.script.scope(root), root.id), ())
        around = [each for store in stores for each in frame.script.ancestors(store)]
        return any(isinstance(each, ast.For) and root.id in names_in(each.target) for each in around)

    def name_changed(self, root: ast.Name, node: ast.Call, owner: Value, value: Value, frame: Frame) -> None:
        where = frame.owner(root.id)
        if where is None:
            return
        given = getattr(where.node, "args", None)
        parameters = {each.arg for each in ast.walk(given) if isinstance(each, ast.arg)} if given else set()
        named_twice = not owner.is_local and has_another_name(root, node, frame)
        named_twice |= becomes_unknown(owner, value) and stands_for_another(root, frame)
        own = not self.in_forward and where is frame and not owner.is_local and value.is_local
        named_twice |= own and goes_by_two_names(root, node, frame)
        if root.id in parameters or named_twice:
            self.problem(frame, node, OTHER_NAME.format(root.id), value.loaders)
        decided = not self.undecided or where is frame  # of a frame, branches are joined
        if isinstance(frame.script.parents.get(root), ast.Attribute) and self.takes_one(root, frame) and value.is_kept:
            self.problem(frame, node, value.reason or COUPLES, value.loaders)
        where.names[root.id] = value if decided else join(where.names[root.id], value)


def is_in_place(name: str) -> bool:
    """Whether a method changes its tensor."""
    return name.endswith("_") and not name.endswith("__") and name not in _OTHERWISE


def root_of_tensor(node: ast.expr) -> ast.expr:
    """What a tensor is reached by: `x` in `x.data.resize_(…)`."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_in_place(node.func.attr):
            node = node.func.value
        else:
            return node


_SHARING = frozenset({"Variable", "view", "detach", "squeeze", "unsqueeze", "transpose", "t", "permute", "numpy"})


def has_another_name(root: ast.Name, node: ast.AST, frame: Frame) -> bool:
    """Whether a variable stands for the same memory as another one does, which is not given it again afterwards."""
    script = frame.script
    block = script.parents[script.statement(node)]
    for statement in script.find(ast.Assign):
        target = statement.targets[0]
        same = isinstance(target, ast.Name) and target.id == root.id
        if same or not _shares(statement.value, root.id):
            continue
        behind = script.parents[statement] is block and statement.lineno > node.lineno  # type: ignore[attr-defined]
        if not behind:
            return True
    return False


def _shares(node: ast.expr, name: str) -> bool:
    """Whether an expression is a tensor of that name, or a view of it."""
    if isinstance(node, ast.Name):
        return node.id == name
    if isinstance(node, ast.Attribute):
        return node.attr in ("data", "T") and _shares(node.value, name)
    if isinstance(node, ast.Subscript):
        return _shares(node.value, name)
    if isinstance(node, ast.Tuple | ast.List):
        return any(_shares(each, name) for each in node.elts)
    if isinstance(node, ast.Call):
        of = node.func.value if isinstance(node.func, ast.Attribute) else None
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [*node.args[:1], *([of] if of is not None else [])]
        return called in _SHARING and any(_shares(each, name) for each in given)
    return False


def becomes_unknown(before: Value, after: Value) -> bool:
    """Whether a tensor of samples is changed by what each rank has another one of: `d.sub_(d.mean())`."""
    tensors = before.kind in LOCAL_ROWS and (before.array or not before.host)
    return after.kind == "unknown" and (tensors or bool(before.only(Items)))


def stands_for_another(root: ast.Name, frame: Frame) -> bool:
    """Whether a variable is given the memory of another one, which changes with it: `d = x`, `d = x.view(-1)`; or is a
    parameter, which the caller may have by another name."""
    given = getattr(frame.node, "args", None)
    parameters = {each.arg for each in ast.walk(given) if isinstance(each, ast.arg)} if given else set()
    script, scope = frame.script, frame.script.scope(root)
    stored = [script.parents[store] for store in script.stores.get((scope, root.id), ())]
    pairs = [(each.targets[0], each.value) for each in stored if isinstance(each, ast.Assign)]
    for each in (script.parents[part] for part in stored if isinstance(part, ast.Tuple)):
        target = each.targets[0] if isinstance(each, ast.Assign) else None
        if isinstance(target, ast.Tuple) and isinstance(each, ast.Assign) and isinstance(each.value, ast.Tuple):
            pairs += zip(target.elts, each.value.elts, strict=False)
    given_by = [value for target, value in pairs if isinstance(target, ast.Name) and target.id == root.id]
    return root.id in parameters or any(
        _shares(value, part.id)
        for value in given_by
        for part in ast.walk(value)
        if isinstance(part, ast.Name) and part.id != root.id
    )
