"""What a program chooses by a name that only the run knows: `importlib.import_module(name)`, `eval(name)`."""

from __future__ import annotations

import ast
import re

from ..imported_by_name import attributes_of, defines, imports_by_name, pattern
from ..script import Script
from .frames import Frame
from .state import State
from .values import Class, Function, Value

_READS = frozenset({"items", "keys", "values", "get", "copy"})
_SHOWS = frozenset({"print", "str", "repr", "dict", "len", "sorted", "list", "json.dump", "json.dumps", "yaml.dump"})
_SHOWS |= {"pprint.pprint", "pprint.pformat", "copy.copy", "copy.deepcopy", "wandb.init", "argparse.Namespace"}


class ByName(State):
    """The files and classes that may be meant."""

    def is_module_class(self, cls: Class) -> bool:
        raise NotImplementedError

    def imported_by_name(self, node: ast.Call, frame: Frame) -> Value | None:
        """The files that a call may import, of which each has what the program takes of it; None for other calls."""
        if not imports_by_name(node):
            return None
        name = pattern(node.args[0]).lstrip(".")
        taken = attributes_of(frame.script.tree, node)
        meant = re.compile(re.escape(name).replace(r"\*", r"[\w.]*"))
        found = [each for each in self.scripts[1:] if taken and meant.fullmatch(_module(each, name.count(".")))]
        values = [self.file_value(each) for each in found if each is not frame.script and defines(each.tree, taken)]
        return Value(things=frozenset().union(*(each.things for each in values))) if values else None

    def class_by_name(self, name: ast.expr, frame: Frame) -> Value | None:
        """The models that a file may mean by one of its names, and the functions that nothing else there names, which
        may make others; None where it has no model."""
        meant = re.compile(re.escape(pattern(name)).replace(r"\*", r"\w*"))
        names = self.module_frame(frame.script).names.items()
        known = {each: value for each, value in names if meant.fullmatch(each)}
        things = {thing for value in known.values() for thing in value.only(Class)}
        models = {each for each in things if isinstance(each, Class) and self.is_module_class(each)}
        named = {node.id for node in frame.script.find(ast.Name)}
        functions = {thing for each in known.keys() - named for thing in known[each].only(Function)}
        return Value(things=frozenset(models | functions)) if models else None


def _module(script: Script, dots: int) -> str:
    """The name of a file as a module, of which as many packages as an import has are told."""
    path = script.path.parent if script.path.name == "__init__.py" else script.path.with_suffix("")
    return ".".join(path.parts[-dots - 1 :])


def is_filled(script: Script, table: ast.expr) -> bool:
    """Whether something may be put into the attributes of an object, `self.__dict__.update(settings)`, or
    `vars(self)[key] = 1`: whatever is done with them but reading them."""
    parent = script.parents[table]
    if isinstance(parent, ast.Attribute):
        return parent.attr not in _READS
    if isinstance(parent, ast.Subscript):
        return not isinstance(parent.ctx, ast.Load) or parent.slice is table
    if isinstance(parent, ast.Call):
        return script.qualified(parent.func) not in _SHOWS
    if isinstance(parent, ast.keyword):
        return parent.arg is not None
    return not isinstance(parent, ast.Compare | ast.For | ast.comprehension | ast.FormattedValue | ast.BinOp | ast.Dict)
