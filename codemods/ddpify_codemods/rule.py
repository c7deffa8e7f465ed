"""What a rule is made of: it looks at one script and yields edits and findings; it changes nothing itself."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from .facts.script import Script
    from .targets import Target

Severity = Literal["refused", "warning", "note"]
Folder = Literal[
    "always",
    "backend",
    "convert",
    "devices",
    "exact",
    "from_horovod",
    "from_plain",
    "from_spawn",
    "ignite",
    "lint",
    "modernize",
    "onto_accelerator",
    "per_process",
    "plain",
    "refuse",
    "retarget",
    "to_horovod",
]

# Arguments of `convert` without which some rules do nothing, as the command says them.
OPTIONS = {
    "fully_sharded": "--strategy fsdp2",
    "optimizer_sharding": "--optimizer-sharding",
    "per_process": "--batch-size per-process",
    "resume": "--resume checkpoints",
}


@dataclass(frozen=True)
class Change:
    """Something that was done: the rule, the 1-based line of the original and what happened there."""

    rule: str
    line: int
    message: str


@dataclass(frozen=True)
class Finding:
    """Something a person must know: what is wrong at a 1-based line of the original, and what to do about it.

    distributed: it is refused because it is distributed already; no comment switches that off.
    """

    rule: str
    severity: Severity
    line: int
    message: str
    remedy: str
    distributed: bool = False


@dataclass(frozen=True)
class Replace:
    """Replace an expression by `template`; `{}` in it stands for the expression's own code, edits inside it included.

    `imports` are the names of ddpify_runtime that the new code uses; `modules` are whole import lines it needs.
    `parts` are the expressions inside `node` that the `{}` stand for instead, in order:
    `Replace(call, "{}.cpu()", …, parts=(call.func.value,))`. `bare`: what is put in needs no parentheses there.
    """

    node: ast.expr
    template: str
    message: str
    imports: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    parts: tuple[ast.expr, ...] = ()
    bare: bool = False


@dataclass(frozen=True)
class ChangeArgument:
    """Give the call `node` the keyword argument `name=template`, in the place of its keyword `instead`, or of its
    positional argument of that place, "2".

    `instead` "": behind its other arguments. `name` "": the keyword `instead` goes, and nothing comes. `parts` are the
    expressions inside the call that `{}` stand for, in order. `first_named`: the name that the first of them, an
    argument of the call, gets where it stands, and goes by. `imports` are the names of ddpify_runtime that it uses.
    `names`: the new argument is the second, and these are what the positional arguments behind it are called.
    """

    node: ast.Call
    name: str
    template: str
    message: str
    instead: str = ""
    imports: tuple[str, ...] = ()
    parts: tuple[ast.expr, ...] = ()
    first_named: str = ""
    modules: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Insert:
    """Put the statements of `code` before or after the statement `at`, in its block, at its indentation.

    `above`: the blank lines and comments above `at` come to stand above the new code. `last`: what other rules put
    there comes first. `apart`: a blank line follows it.
    """

    at: ast.stmt
    code: str
    message: str
    where: Literal["before", "after"] = "before"
    imports: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    above: bool = False
    last: bool = False
    apart: bool = False


@dataclass(frozen=True)
class Guard:
    """Put the statement `at`, which has no block of its own, below `if test:`, or `with test:`.

    `named`: which arguments of the call that it is get a name in lines before, by their places in the source, and the
    names; -1 for the object whose method is called.
    """

    at: ast.stmt
    test: str
    message: str
    modules: tuple[str, ...] = ()
    is_context: bool = False
    named: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Delete:
    """Remove a statement; a block that would become empty keeps a `pass`."""

    at: ast.stmt
    message: str


@dataclass(frozen=True)
class Unguard:
    """Put the block of an `if` in its place, or that of its `else`."""

    at: ast.If
    message: str
    block: Literal["body", "orelse"] = "body"


@dataclass(frozen=True)
class ReplaceImport:
    """Take `name` out of the `from … import` statement `at`, and import it under the same alias from ddpify_runtime."""

    at: ast.ImportFrom
    name: str
    message: str


@dataclass(frozen=True)
class ChangeParameters:
    """Take the parameters `dropped` out of a function's definition, and put `first` before the others."""

    at: ast.FunctionDef
    message: str
    dropped: tuple[str, ...] = ()
    first: str = ""


@dataclass(frozen=True)
class GuardToFunction:
    """Make the block of the main guard `at` the body of `def name(parameter)`, and put `code` after it."""

    at: ast.If
    name: str
    code: str
    message: str
    modules: tuple[str, ...] = ()
    parameter: str = "index"


@dataclass(frozen=True)
class DropImport:
    """Take `name` out of an import statement that has others too."""

    at: ast.Import | ast.ImportFrom
    name: str
    message: str


@dataclass(frozen=True)
class RewriteImport:
    """Put the import statement `code` in the place of another."""

    at: ast.ImportFrom
    code: str
    message: str = ""


Edit: TypeAlias = (
    Replace
    | ChangeArgument
    | Insert
    | Delete
    | ReplaceImport
    | DropImport
    | RewriteImport
    | ChangeParameters
    | GuardToFunction
    | Guard
    | Unguard
)


def place_of(edit: Edit) -> ast.expr | ast.stmt:
    """What an edit changes, or puts something beside."""
    return edit.node if isinstance(edit, (Replace, ChangeArgument)) else edit.at


@dataclass(frozen=True, eq=False)
class Rule:
    """One concern: its documentation, a before and after that is run as a test, and the function that looks for it.

    `before` and `after` are whole scripts converted for `target`; a rule that refuses has `after = ""`. `folder`: the
    one that it was found in, which says what it is for (rules/__init__.py). `check` is asked of each file alone,
    `check_program` of all of them, the one that is started first, with the edits that are made for this rule.
    `option`: the argument of `convert` without which it does nothing.
    """

    id: str
    title: str
    why: str
    before: str
    after: str
    check: Callable[[Script, Target], Iterator[Edit | Finding]]
    target: str = "cuda"
    folder: Folder | None = None
    check_program: Callable[[Sequence[Script], Target, Sequence[Edit]], Iterator[tuple[Script, Finding]]] | None = None
    option: Literal["", "fully_sharded", "optimizer_sharding", "per_process", "resume"] = ""

    @property
    def options(self) -> dict[str, Any]:
        """The further arguments of `convert` with which its example is converted."""
        return {self.option: "checkpoints" if self.option == "resume" else True} if self.option else {}

    @property
    def style(self) -> str:
        """The style in which its example is converted."""
        return "plain" if self.folder == "plain" else "exact"
