"""DDP101: the script joins the process group before it does anything, and leaves it at the end."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...facts.header import declares, last_leading_import, main_guard, module_level_work
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target

_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Insert init_process_group and destroy_process_group in the script that gets started."""
    if not script.is_entry:
        return
    guard = main_guard(script.tree)
    works_on_import = any(not declares(script, node) for node in module_level_work(script.tree))
    if guard is not None and not works_on_import:
        yield _init(guard.body[0], target)
        last = guard.body[-1]
    else:
        anchor = last_leading_import(script.tree)
        yield _init(script.tree.body[0], target) if anchor is None else _init(anchor, target, after=True)
        last = script.tree.body[-1]
        last = guard.body[-1] if guard is last and guard is not None else last
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


def _init(at: ast.stmt, target: Target, after: bool = False) -> Insert:
    arguments = ", ".join(filter(None, (f'"{target.backend}"', target.init_arguments)))
    return Insert(
        at,
        f"\ninit_process_group({arguments})" if after else f"init_process_group({arguments})",
        "join the process group before anything else",
        "after" if after else "before",
        imports=("init_process_group",),
        modules=target.modules,
    )


def after_init(script: Script, code: str, message: str, imports: tuple[str, ...]) -> Insert:
    """The edit that puts a statement behind init_process_group."""
    settled = [each.at for each in script.view.statements if each.key == "init_process_group"] if script.view else []
    if settled:
        return Insert(settled[0], code, message, "after", imports)
    guard = main_guard(script.tree)
    works_on_import = any(not declares(script, node) for node in module_level_work(script.tree))
    if guard is not None and not works_on_import:
        return Insert(guard.body[0], code, message, imports=imports)
    anchor = last_leading_import(script.tree)
    if anchor is None:
        return Insert(script.tree.body[0], code, message, imports=imports)
    return Insert(anchor, code, message, "after", imports)


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
Slurm or MPI by itself; started alone, the script runs as it did.""",
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
