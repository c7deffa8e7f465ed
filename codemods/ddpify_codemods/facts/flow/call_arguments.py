"""What calls give: the values of their arguments, and the parameters of a function that get them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .bound_arguments import spread_out
from .constructor_fields import Field, own_fields
from .frames import Frame
from .held_values import local_entries, may_differ
from .methods import Methods
from .named_tuples import fields_of
from .operations import element
from .own_networks import is_called_by_library
from .signatures import needs
from .starred import parts_given
from .values import SAME, Class, Function, Items, Library, Module, Thing, Value, join, made_of, of, set_in_run


class CallArguments(Methods):
    """What functions of the program are given."""

    def all_given(self, node: ast.Call, function: Value, frame: Frame) -> list[Value]:
        """The values of the positional arguments of a call. Where it is not known how many a list stands for,
        `show(*outputs)`, each parameter from there on may get any of what is left."""
        args: list[Value] = []
        places = max((self.places_of(each) for each in function.things), default=0)
        for place, each in enumerate(node.args):
            values = self.given(each, function, frame)
            if isinstance(each, ast.Starred) and place == len(node.args) - 1:
                number = self.needed(function, node) - len(args)
                values = parts_given(self.value(each.value, frame), number, self.part) or values
            if isinstance(each, ast.Starred) and len(values) == 1 and _differ(values) and places > len(args) + 1:
                rest = [one for other in node.args[place + 1 :] for one in self.given(other, function, frame)]
                one = values[0]
                for other in rest:
                    one = join(one, other)
                return [*args, *[one] * max(places - len(args), 1 + len(rest))]
            args += values
        return args

    def needed(self, function: Value, node: ast.Call) -> int:
        """How many values a function or a network of the program has to be given by their places, no more and no less;
        0 where that is not known."""
        counts: set[int] = set()
        for thing in function.things:
            found = [thing] if isinstance(thing, Function) else []
            if isinstance(thing, Module):
                found = self.forwards_of(thing) or []
            counts |= {needs(each.node, node, each.owner is not None) for each in found} if found else {0}
        return counts.pop() if len(counts) == 1 else 0

    def places_of(self, thing: Thing) -> int:
        """How many values a function or a class of the program takes by their places; 0 where that is not known."""
        if isinstance(thing, Class):
            if fields := fields_of(thing):
                return len(fields)
            initial = self.method_of(thing, "__init__", of(thing))
            if initial is not None:
                return self.places_of(initial)
            return len([field for field in self.fields_with_bases(thing) if field.given == "anyhow"])
        if not isinstance(thing, Function):
            return 0
        parameters = thing.node.args
        return len([*parameters.posonlyargs, *parameters.args]) - (thing.owner is not None)

    def fields_with_bases(self, cls: Class, depth: int = 5) -> list[Field]:
        """The fields that a class without an `__init__` of its own has, those of the program's classes that it is
        derived from first."""
        bases = self.bases_of(cls) if depth else []
        inherited = [field for base in reversed(bases) for field in self.fields_with_bases(base, depth - 1)]
        return list({field.name: field for field in [*inherited, *own_fields(cls.node)]}.values())

    def given(self, node: ast.expr, function: Value, frame: Frame) -> list[Value]:
        """The values that an argument stands for: several for `*values`."""
        if not isinstance(node, ast.Starred):
            return [self.value(node, frame)]
        value = self.value(node.value, frame)
        for thing in value.only(Items):
            if isinstance(thing, Items) and thing.shape == "tuple" and thing.rest is None:
                return list(thing.known.values())
        if value.kind == "shape" and all(isinstance(thing, Library) for thing in function.things):
            return [value]  # torch.randn(*x.shape) is torch.randn(x.shape)
        own = bool(function.things) and all(isinstance(thing, Function | Class) for thing in function.things)
        if own and not value.is_local and local_entries(value) and (entry := _of_list(value)) is not None:
            return [entry]
        if value.is_local or local_entries(value):
            return [made_of("unknown", [value], reason="how many values there are depends on this rank's batches")]
        return [value]

    def bind(
        self, function: Function, args: list[Value], keywords: dict[str, Value], inner: Frame, frame: Frame
    ) -> None:
        parameters = function.node.args
        names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
        given = [function.owner, *args] if function.owner is not None else list(args)
        defaults = dict(zip(names[len(names) - len(parameters.defaults) :], parameters.defaults, strict=True))
        defaults |= {
            each.arg: one for each, one in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True) if one
        }
        outer = inner.outer or frame
        by_library = is_called_by_library(function.script, function.node)
        taken = [*names, *(each.arg for each in parameters.kwonlyargs)]
        for name in taken:
            if name in defaults:
                inner.names[name] = self.by_default(defaults[name], outer) if not by_library else Value(is_none=None)
            else:
                inner.names[name] = SAME
        for name, value in zip(names, [each for each in given if each is not None], strict=False):
            inner.names[name] = value
        rest = given[len(names) :]
        if parameters.vararg:
            inner.names[parameters.vararg.arg] = of(Items("tuple", dict(enumerate(v for v in rest if v is not None))))
        spread = spread_out(keywords.get("**"))
        if parameters.kwarg:
            by_name = {each.arg for each in (*parameters.args, *parameters.kwonlyargs)} | {"**"}
            words: dict[object, Value] = {
                name: each for name, each in (keywords | spread.known).items() if name not in by_name
            }
            inner.names[parameters.kwarg.arg] = of(Items("dict", words, None if spread.all_known else spread.unseen))
        told = {*names[: len(given)], *keywords}
        unset = [name for name in taken if name not in told]
        # What has a default that is no None is meant as a rule to keep it: `return_dict=False`.
        may_be_given = [name for name in unset if name not in defaults or inner.names[name].is_none is not False]
        for name, value in inner.names.items() if not spread.all_known else ():
            if name in defaults and name not in told:  # as the command line says, or a file
                inner.names[name] = set_in_run(value)
        for name in may_be_given if may_differ(spread.unseen) else ():
            inner.names[name] = join(inner.names[name], spread.unseen) if name in defaults else spread.unseen
        for name in (each for each in unset if each in spread.known):
            left_out = name in spread.perhaps and name in defaults
            given_by_it = spread.known[name]
            inner.names[name] = join(inner.names[name], given_by_it) if left_out else given_by_it
        inner.names |= {name: value for name, value in keywords.items() if name in taken}
        if function.owner is not None and names:
            inner.this = function.owner
        for name, value in inner.names.items():
            inner.names[name] = value.settled

    def by_default(self, node: ast.expr, frame: Frame) -> Value:
        """What a parameter holds that is given nothing: a list or a dict is the same one in each call."""
        kept = self.kept_defaults.get(node)
        value = self.value(node, frame) if kept is None else kept
        if isinstance(node, ast.List | ast.Dict | ast.Call) and value.only(Items):
            self.kept_defaults[node] = value
        return value


def _differ(values: Sequence[Value]) -> bool:
    """Whether some values differ between the ranks, or hold what does."""
    return any(map(may_differ, values))


def _of_list(value: Value) -> Value | None:
    """What each entry of a list may be that has no entry for each sample; None for anything else."""
    lists = value.only(Items)
    alike = [each for each in lists if isinstance(each, Items) and each.shape == "list" and not each.extended]
    alike = [each for each in alike if not each.by_sample and not each.may_be_by_sample]
    return element(value, None) if len(alike) == len(value.things) > 0 else None
