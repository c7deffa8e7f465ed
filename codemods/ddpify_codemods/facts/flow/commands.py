"""Libraries that call a function with what the command line says: `app.run(main)`, `fire.Fire(main)`."""

from __future__ import annotations

from .values import Function, Value

COMMANDS = frozenset({"absl.app.run", "fire.Fire", "fire.core.Fire", "typer.run"})


def from_command_line(function: Function) -> dict[str, Value]:
    """What the parameters of such a function may be, whatever their defaults are."""
    parameters = function.node.args
    named = (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)
    return {each.arg: Value(is_none=None) for each in named}
