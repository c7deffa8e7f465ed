"""DDP101: the script joins the process group before it does anything, and leaves it at the end."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Literal

from ...facts.header import joined_after, main_guard
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target

_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Insert init_process_group and destroy_process_group in the script that gets started."""
    if not script.is_entry:
        return
    at, where = joined_after(script)
    yield _init(script, at, target, where)
    guard = main_guard(script.tree)
    last = script.tree.body[-1]
    last = guard.body[-1] if guard is not None and (guard is last or at is guard.body[0]) else last
    if not never_returns(script, last):
        blank = "\n" if last is script.tree.body[-1] and hasattr(last, "body") else ""
        code = f"{blank}destroy_process_group()"
        yield Insert(last, code, "leave the process group", "after", imports=("destroy_process_group",), last=True)


def check_program(scripts: Sequence[Script], target: Target, edits: Sequence[Edit]) -> Iterator[tuple[Script, Finding]]:
    """Say so when the file only defines things: what imports and calls them has to join the process group."""
    if not scripts[0].is_entry:
        message = "nothing in this file runs when it is started, so it joins no process group and divides nothing"
        remedy = 'convert the script that starts it, or call its function below `if __name__ == "__main__":`'
        yield scripts[0], Finding(RULE.id, "warning", 1, message, remedy)


def _init(script: Script, at: ast.stmt, target: Target, where: Literal["before", "after"]) -> Insert:
    arguments = ", ".join(filter(None, (f'"{target.backend}"', target.init_arguments)))
    early = at is script.joined_above
    code = "\n" * (early or where == "after") + f"init_process_group({arguments})"
    code += "  # before the imports that need it" * early
    message = "join the process group before anything else"
    return Insert(at, code, message, where, imports=("init_process_group",), modules=target.modules, apart=early)


def after_init(script: Script, code: str, message: str, imports: tuple[str, ...]) -> Insert:
    """The edit that puts a statement behind init_process_group."""
    settled = [each.at for each in script.view.statements if each.key == "init_process_group"] if script.view else []
    if settled:
        return Insert(settled[0], code, message, "after", imports)
    at, where = joined_after(script)
    return Insert(at, code, message, where, imports)


def never_returns(script: Script, last: ast.stmt) -> bool:
    """Whether nothing comes after a statement."""
    if isinstance(last, ast.Raise):
        return True
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return script.qualified(last.value.func) in _EXITS
    endless = isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and bool(last.test.value)
    return endless and not any(isinstance(node, ast.Break) for node in ast.walk(last))


RULE = Rule(
    id="DDP101",
    title="Join and leave the process group",
    why="""\
Every process has to find the others before it does anything else: from that line on all of them draw the same random
numbers, use their own device, and only the first one prints (S1, P4). The runtime reads the environment of torchrun,
Slurm or MPI by itself; started alone, the script runs as it did. A file that draws, prints or writes while it is
imported, or makes loaders and models, is imported below that line.""",
    before="""\
import torch


def main():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    main()
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    get_local_rank,
    init_process_group,
)


def main():
    model = torch.nn.Linear(2, 1)
    model = DistributedDataParallel(model, device_ids=[get_local_rank()])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    init_process_group("nccl")
    main()
    destroy_process_group()
""",
    check=check,
    check_program=check_program,
)
