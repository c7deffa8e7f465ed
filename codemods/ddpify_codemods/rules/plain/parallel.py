"""DDP621: an engine that runs a function in every process (ignite.distributed.Parallel) gets the main guard's block."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...facts.header import declares, main_guard, module_level_work
from ...facts.launch import shared_names
from ...facts.script import Script
from ...plain_words import Words
from ...rule import Edit, Finding, GuardToFunction, Insert, Rule
from ...targets import Target
from .words import program_of

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def starts(script: Script, words: Words) -> ast.If | None:
    """The main guard whose block can be the function that an engine runs in every process; None for none."""
    guard = main_guard(script.tree)
    if not words.parallel or not script.is_entry or guard is None or guard.orelse:
        return None
    if not all(declares(script, node) for node in module_level_work(script.tree)):
        return None
    inside = [node for statement in guard.body for node in ast.walk(statement)]
    stars = (node for node in inside if isinstance(node, ast.ImportFrom))
    # Such classes could not be pickled, and what is global has no annotation.
    defines = any(isinstance(node, (*_DEFINITIONS, ast.AnnAssign)) for node in inside)
    return None if defines or any(alias.name == "*" for node in stars for alias in node.names) else guard


def rank_0_prints(script: Script, words: Words) -> tuple[list[str], list[str]]:
    """The lines that silence the other ranks, and the imports that they need."""
    lines = [f"if {words.rank} != 0:", '    sys.stdout = open(os.devnull, "w")  # rank 0 prints']
    modules = [*words.imports, "import os", "import sys"]
    if _decides_by_logs(script):
        return lines, modules
    program = program_of(script)
    if any(full.partition(".")[0] == "logging" for each in program.scripts for full in each.imported.values()):
        lines.append("    logging.disable(logging.WARNING)")
        modules.append("import logging")
    if program.joined_above is None:  # below its import
        loggers = [name for name, full in script.imported.items() if full == "loguru.logger"]
        if not loggers and any("loguru.logger" in each.imported.values() for each in program.scripts):
            loggers = ["loguru.logger"]
            modules.append("import loguru")
        lines += [f'    {name}.disable("")' for name in loggers]
    return lines, modules


def _decides_by_logs(script: Script) -> bool:
    """Whether a program computes something where its log takes it alone: if `log.isEnabledFor(DEBUG)`, or in functions
    that loguru calls, `logger.opt(lazy=True)`. A rank with a silent log would not."""
    for call in (node for each in program_of(script).scripts for node in each.find(ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name == "isEnabledFor" or (name == "opt" and any(word.arg == "lazy" for word in call.keywords)):
            return True
    return False


def own_flags(script: Script, words: Words, lines: Sequence[str]) -> list[str]:
    """Lines that read the engine's flags, under other names where the program has such flags of its own."""
    named = {str(node.value) for each in program_of(script).scripts for node in each.find(ast.Constant)}
    if not named & set(words.flags):
        return list(lines)
    changed = []
    for line in lines:
        for flag in words.flags:
            line = line.replace(flag, f"--idist_{flag.removeprefix('--')}")
        changed.append(line.replace("launched.", "launched.idist_"))
    return changed


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Make the main guard's block a function that the engine runs in every process."""
    words = target.words
    if not script.is_entry or not words.parallel:
        return
    guard = starts(script, words)
    if guard is None:
        line = script.tree.body[0].lineno
        message = "this script works outside of a main guard, so that it cannot start processes itself"
        yield Finding(RULE.id, "note", line, message, "start it with torchrun, srun or horovodrun")
        return
    name, taken = "training", _module_names(script)
    while name in taken:
        name += "_"
    shared = _shared(script, guard)
    lines, modules = rank_0_prints(script, words)
    lines = [*([f"global {', '.join(shared)}"] if shared else []), *lines]
    yield Insert(guard.body[0], "\n".join(lines), "rank 0 prints", modules=tuple(modules))
    body = "\n    ".join(own_flags(script, words, words.parallel)).format(name)
    code = f'\n\nif __name__ == "__main__":\n    {body}\n'
    needed = (*words.imports, "import argparse", "import sys", "import torch")
    yield GuardToFunction(guard, name, code, "run it in every process", needed, "local_rank")


def _module_names(script: Script, beside: ast.If | None = None) -> set[str]:
    """The names that a file makes and reads outside of its functions, and, if it is given, of its main guard."""
    inside = set(ast.walk(beside)) if beside is not None else set()
    used = (node for node in script.find(ast.Name) if node not in inside)
    imports = (node for node in script.tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    imported = {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
    defined = {node.name for node in script.tree.body if isinstance(node, _DEFINITIONS)}
    return {node.id for node in used if isinstance(script.scope(node), ast.Module)} | imported | defined


def _shared(script: Script, guard: ast.If) -> list[str]:
    """Names that the block makes and that the rest of the file reads or makes, too; and what it imports."""
    inside = {node for statement in guard.body for node in ast.walk(statement)}
    made = {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    imports = (node for node in inside if isinstance(node, ast.Import | ast.ImportFrom))
    imported = {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
    return sorted(shared_names(script, guard) | imported | made & _module_names(script, guard))


RULE = Rule(
    id="DDP621",
    title="Let Ignite start the processes",
    why="""\
idist.Parallel starts the processes itself (`python train.py --nproc_per_node 2`), or joins those that torchrun, srun or
horovodrun has started, and leaves them at the end (P4). It runs a function that a new process can import, so the main
guard's block becomes one. A script that works at its top level is joined there, and cannot start processes.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
""",
    after="""\
import argparse
import os
import sys

import ignite.distributed as idist
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    loader = idist.auto_dataloader(
        TensorDataset(torch.rand(64, 4), torch.rand(64, 1)),
        batch_size=8,
        shuffle=True,
    )
    model = torch.nn.Linear(4, 1)
    ddp_model = idist.auto_model(model)
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.1))
    for epoch in range(3):
        if idist.get_world_size() > 1:
            loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(ddp_model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def training(local_rank):
    if idist.get_rank() != 0:
        sys.stdout = open(os.devnull, "w")  # rank 0 prints
    torch.manual_seed(0)
    main()


if __name__ == "__main__":
    launcher = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    launcher.add_argument("--backend", default="nccl" if torch.cuda.is_available() else "gloo")
    launcher.add_argument("--nproc_per_node", type=int)
    launched, sys.argv[1:] = launcher.parse_known_args()
    with idist.Parallel(launched.backend, launched.nproc_per_node) as parallel:
        parallel.run(training)
""",
    check=check,
    target="ignite",
)
