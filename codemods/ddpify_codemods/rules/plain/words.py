"""What the rules of the plain style have in common: the names that they write, and the program that they read."""

from __future__ import annotations

import ast

from ...facts import batch_norm
from ...facts.flow.program import Program
from ...facts.loaders import names_in
from ...facts.reach import all_names
from ...facts.script import Script
from ...targets import Target

REMEDY = "use --style exact, which divides this too"


# What only looks at what it is given.
_QUIET = frozenset(
    [
        "state_dict",
        "join",
        "format",
        "cpu",
        "numpy",
        "items",
        "keys",
        "values",
        "vars",
        "dict",
        "list",
        "tuple",
        "str",
        "int",
        "float",
        "len",
        "round",
        "detach",
        "item",
        "tolist",
        "clone",
        "array",
        "asarray",
        "Path",
        "get",
        "strftime",
        "get_last_lr",
        "get_rank",
        "get_world_size",
        "parameters",
        "module",
        "size",
        "dim",
        "max",
        "min",
        "sum",
        "sorted",
        "view",
        "reshape",
        "permute",
        "transpose",
        "squeeze",
        "unsqueeze",
        "clamp",
        "mul",
        "add",
        "byte",
        "to",
        "argmax",
        "Path",
        "namedtuple",
        "isoformat",
        "upper",
        "lower",
        "split",
        "repeat",
        "expand",
        "contiguous",
        "flatten",
        "sorted",
        "replace",
        "strip",
        "zfill",
        "rjust",
        "data",
        "copy",
        "deepcopy",
        "named_parameters",
        "get_lr",
        "mean",
        "std",
        "trace",
        "diagonal",
        "numel",
        "make_grid",
        "sigmoid",
        "softmax",
        "exp",
        "astype",
        "fromarray",
        "stack",
        "concatenate",
        "DataFrame",
    ]
)


def program_of(script: Script) -> Program:
    """The program of a script that is converted to the plain style."""
    assert script.program is not None
    return script.program


def module_name(script: Script, module: str, at: ast.stmt, after: bool = False) -> str:
    """The name of a module at a statement of a file: the first that the file gives it before, or its own.

    after: whether the import may be that statement.
    """
    for statement in script.tree.body:
        if statement.lineno > at.lineno or (statement is at and not after):
            break
        for alias in statement.names if isinstance(statement, ast.Import) else ():
            if alias.name == module:
                return alias.asname or alias.name
    return module


def is_here(script: Script, other: Script) -> bool:
    """Whether something belongs to the file that a rule looks at."""
    return script.path == other.path


def device(target: Target) -> str:
    """The argument that puts a tensor where the process group can reduce it, with its comma; "" on a CPU."""
    words = target.words
    return f", device={target.device}" if target.is_accelerator and not (words.device or words.on_host_too) else ""


def load_device(target: Target) -> str:
    """The source of the device onto which torch.load puts tensors."""
    if target.words.on_host_too:
        return f'"{target.load_device}" if {target.module}.is_available() else "cpu"'
    return target.words.device or f'"{target.load_device}"'


def normalizes(program: Program) -> bool:
    """Whether a model of the program may have statistics of its batches (BatchNorm), beside those that it only
    evaluates: one does, as far as names show, or has parts that cannot be seen."""
    found = program.followed.found
    return batch_norm.normalizes(program.scripts, found.only_evaluated) or bool(found.of_others)


def names_something(program: Program, word: str) -> bool:
    """Whether a name of the program has a word in it, beside those in networks that it only evaluates."""
    without = program.followed.found.only_evaluated
    return any(word in name for script in program.scripts for name in all_names(script, without))


def free_name(script: Script, name: str) -> str:
    """A name that the file does not use."""
    taken = {*names_in(script)}
    while name in taken:
        name += "_"
    return name


def computes_quietly(script: Script, node: ast.expr) -> bool:
    """Whether nothing is drawn, changed or sent by computing an expression, so that one rank can do it."""
    return all(_is_quiet(script, each) for each in ast.walk(node) if isinstance(each, ast.Call))


def is_quiet(script: Script, call: ast.Call) -> bool:
    """Whether one rank alone can compute what a call is given (I11)."""
    inner = (each for each in ast.walk(call) if isinstance(each, ast.Call) and each is not call)
    return all(_is_quiet(script, each) for each in inner)


def _is_quiet(script: Script, call: ast.Call) -> bool:
    return _last(call.func) in _QUIET or script.qualified(call.func).startswith(("os.path.", "math."))


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
