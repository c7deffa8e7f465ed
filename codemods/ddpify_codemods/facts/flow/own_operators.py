"""What operators and functions of Python do that a class of the program defines: `meter + other`, `len(log)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .comprehensions import Comprehensions
from .frames import Frame
from .held_values import local_entries
from .values import SAME, Function, Instance, Items, Value, entries, join, of

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitOr: "or",
    ast.BitAnd: "and",
}
_NUMBERS = {name: f"__{name}__" for name in ("abs", "bool", "complex", "float", "int", "len", "next", "round")}
# What runs over an object.
_RUN_OVER = frozenset(
    {"all", "any", "dict", "enumerate", "filter", "frozenset", "iter", "list", "map", "max", "min", "next", "reversed"}
    | {"set", "sorted", "sum", "tuple", "zip"}
)


class OwnOperators(Comprehensions):
    """What operators give that classes of the program define."""

    def can_be_followed(self, function: Function, given: Sequence[Value]) -> bool:
        raise NotImplementedError

    def own_operator(self, node: ast.BinOp | ast.AugAssign, left: Value, right: Value, frame: Frame) -> Value | None:
        """What an operator gives by a method of one of its sides; None where neither has one."""
        name = _OPERATORS.get(type(node.op), "")
        prefixes = ("i", "") if isinstance(node, ast.AugAssign) else ("",)
        for prefix in prefixes:
            if (result := self._by_method(left, f"__{prefix}{name}__", [right], node, frame)) is not None:
                return result
        return self._by_method(right, f"__r{name}__", [left], node, frame)

    def own_number(self, name: str, args: Sequence[Value], node: ast.AST, frame: Frame) -> Value | None:
        """What `len`, `float` and the like give of an object of the program; None for anything else."""
        method = _NUMBERS.get(name, "")
        return self._by_method(args[0], method, [*args[1:]], node, frame) if method and args else None

    def given_to_run_over(self, name: str, args: Sequence[Value], node: ast.Call, frame: Frame) -> None:
        """A function of Python runs over objects of the program, which cannot be brought together by themselves."""
        for part, value in zip(node.args, args, strict=False) if name in _RUN_OVER else ():
            given = self._by_method(value, "__iter__", [], node, frame)
            if given is not None and (given.is_local or local_entries(given)):
                message = f"`{ast.unparse(part)}` is run over here: it holds numbers of this rank"
                self.problem(frame, node, message, frozenset().union(*(each.loaders for each in entries([given]))))

    def of_own_iteration(self, over: Value, node: ast.AST, frame: Frame) -> Value:
        """What a loop runs over, where classes of the program say by `__iter__` and `__next__` what they give."""
        if not over.only(Instance) or self.loaders_within([over]):
            return over
        made = self._by_method(over, "__iter__", [], node, frame)
        made = over if made is None or not made.things else made
        given = self._by_method(made, "__next__", [], node, frame)
        return made if given is None else of(Items("list", {}, given))

    def _by_method(self, value: Value, name: str, args: list[Value], node: ast.AST, frame: Frame) -> Value | None:
        things = [thing for thing in value.only(Instance) if isinstance(thing, Instance)]
        methods = [self.method_of(thing.cls, name, of(thing)) for thing in things]
        result: Value | None = None
        for method in methods:
            # A loop follows what gives batches, turn by turn.
            if method is not None and not (name == "__iter__" and self.can_be_followed(method, [method.owner or SAME])):
                given = self.enter(method, node, args, {}, frame)
                result = given if result is None else join(result, given)
        return result
