"""DDP614: names that are made of the time or of chance, and decisions by what is drawn, are those of rank 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...facts.called_modules import last_name
from ...facts.devices import source
from ...facts.effects import effects, makes_folder, sample_code
from ...facts.flow.program import Program
from ...facts.flow.unequal import comes_unequally
from ...facts.flow.values import DRAWN
from ...facts.header import functions_place, is_in_group, joined_after
from ...facts.loggers import told_by_run
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from ..exact import temporary_directory, unique_names
from .clocks import by_clock, comes_apart
from .disabled_runs import disabled_runs
from .logged import answers
from .looked_first import chosen_looks
from .looks import LOOKS, as_list, decisive_looks, listing_looks, naming_looks
from .numbered_folders import numbering_calls, of_numbering
from .numbers import reduces
from .rank_0_alone import is_for_rank_0
from .rank_0_seeds import rank_0_seeds
from .told_by_try import told_by_try
from .words import REMEDY, is_here, program_of

_HELPER = '''\


def from_rank_0(value):
    """What rank 0 has, on all processes."""
    {}'''


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Send rank 0's names to the others, where they are not for rank 0 alone."""
    words = target.words
    written = {call for call in effects(script) if not makes_folder(script, call)}
    program = program_of(script)
    scripts = program.scripts
    numbering = of_numbering(program)
    made: list[ast.Call] = []
    for item in unique_names.check(script, target):
        if not isinstance(item, Replace):
            yield item
            continue
        call = script.parents[item.node]
        assert isinstance(call, ast.Call)
        if any(each in written for each in script.ancestors(call)) or is_for_rank_0(script, call):
            continue  # it is computed on rank 0, for what rank 0 writes
        if _sent_later(script, call, program):
            continue
        made.append(call)
    for call in made:
        if not any(each in made for each in script.ancestors(call)):
            yield Replace(call, "from_rank_0({})", "take rank 0's name on every rank", modules=words.imports)
    sent = bool(made)
    for other in scripts:
        for name in _made_early(other, target, program):
            for use in (use for there, use in _uses(scripts, name) if there.path == script.path):
                if use not in numbering and not any(each in written for each in script.ancestors(use)):
                    yield Replace(use, "from_rank_0({})", "take rank 0's name on every rank", modules=words.imports)
                    sent = True
    for answer in answers(script):
        if is_for_rank_0(script, answer):
            continue  # rank 0 has the logger
        yield Replace(answer, "from_rank_0({})", "take what rank 0's logger answers", modules=words.imports)
        sent = True
    for told in told_by_run(script):
        if (
            disabled_runs(script)
            and not is_for_rank_0(script, told)
            and not any(each in written for each in script.ancestors(told))
        ):
            yield Replace(told, "from_rank_0({})", "take what rank 0's run says", modules=words.imports)
            sent = True
    for node, (there, number) in program.followed.found.of_rank_0.items():
        if not is_here(script, there) or any(each in written for each in script.ancestors(node)):
            continue
        followed = program.followed
        unequal = comes_unequally(followed.found, followed.status, script, node)
        if followed.found.own_decisions or unequal:
            yield Finding(RULE.id, "refused", node.lineno, f"`{ast.unparse(node)}` is read here: {DRAWN}", REMEDY)
            continue
        template = f"from_rank_0({number}({{}}))" if number else "from_rank_0({})"
        yield Replace(node, template, "take what rank 0 has drawn", modules=words.imports)
        sent = True
    for item in told_by_try(script, target):
        yield item
        sent |= isinstance(item, Insert)
    for item in rank_0_seeds(script, target):
        yield item
        sent |= isinstance(item, Replace) and "from_rank_0" in item.template
    for item in temporary_directory.shared(script, "from_rank_0({})", words.barrier):
        if isinstance(item, Finding):
            yield item
        else:
            yield replace(item, modules=words.imports)
            sent = True
    for item in by_clock(script):
        if isinstance(item, Replace):
            yield (decided := _by_the_clock(script, item.node, target))
            sent |= isinstance(decided, Replace)
        else:
            yield item
    looks: dict[ast.expr, str] = dict.fromkeys(decisive_looks(script), "{}")
    looks |= {call: as_list(script, call) for call in naming_looks(script)}
    looks |= dict((*listing_looks(script), *chosen_looks(script)))
    for look, listed in looks.items():
        if look in numbering:
            continue  # rank 0 alone looks there
        yield Replace(look, f"from_rank_0({listed})", "decide as rank 0 does", modules=words.imports)
        sent = True
    for call in numbering_calls(script):
        code = f"from_rank_0({{}} if {words.is_rank_0} else None)"
        yield Replace(call, code, "let rank 0 number the folder", modules=words.imports)
        sent = True
    if sent:
        at, where = functions_place(script)
        end = "" if reduces(script) or joined_after(script)[1] == "before" else "\n"
        code = _HELPER.format("\n    ".join(words.of_rank_0)) + end
        message = "a function that gives all ranks what rank 0 has"
        yield Insert(at, code, message, where, modules=words.imports)


def _by_the_clock(script: Script, test: ast.expr, target: Target) -> Replace | Finding:
    """Let all ranks decide as rank 0 does by its clock, where they come there equally often."""
    if comes_apart(script, test):
        message = "ranks come here unequally often, in a part of an evaluation each, and would wait for rank 0's clock"
        return Finding(RULE.id, "refused", test.lineno, message, REMEDY)
    return Replace(test, "from_rank_0({})", "decide by rank 0's clock", modules=target.words.imports)


def _made_early(script: Script, target: Target, program: Program) -> Iterator[str]:
    """The constants of a file that are made of the time, or of chance, before the process group is joined."""
    for item in unique_names.check(script, target):
        call = script.parents[item.node] if isinstance(item, Replace) else None
        if isinstance(call, ast.Call) and (name := _sent_later(script, call, program)):
            yield name


def _sent_later(script: Script, call: ast.Call, program: Program) -> str:
    """The constant that a call makes before the process group is joined, if it can be sent where it is used."""
    name = "" if is_in_group(script, call, program) else _constant(script, call, program.scripts)
    return name if all(_can_be_sent(other, use, program) for other, use in _uses(program.scripts, name)) else ""


def _constant(script: Script, call: ast.Call, scripts: Sequence[Script]) -> str:
    """The name of a file's own, assigned nowhere else, that a call is assigned to; "" for none."""
    statement = script.statement(call)
    if not isinstance(statement, ast.Assign) or script.parents[statement] is not script.tree:
        return ""
    target = statement.targets[0]
    if len(statement.targets) > 1 or not isinstance(target, ast.Name):
        return ""
    stored = [node for _, node in _named(scripts, target.id) if not isinstance(node.ctx, ast.Load)]
    spelled = any(
        isinstance(node, ast.Constant) and node.value == target.id for other in scripts for node in other.nodes
    )
    return target.id if stored == [target] and not spelled else ""


def _named(scripts: Sequence[Script], name: str) -> Iterator[tuple[Script, ast.Name | ast.Attribute]]:
    """Where a name stands in the program, as an attribute too."""
    for other in scripts:
        for node in other.nodes:
            if (isinstance(node, ast.Name) and node.id == name) or (
                isinstance(node, ast.Attribute) and node.attr == name
            ):
                yield other, node


def _uses(scripts: Sequence[Script], name: str) -> Iterator[tuple[Script, ast.Name | ast.Attribute]]:
    return ((other, node) for other, node in _named(scripts, name) if isinstance(node.ctx, ast.Load))


def _can_be_sent(script: Script, use: ast.expr, program: Program) -> bool:
    """Whether all ranks come to where a name is used, once."""
    around = [*script.ancestors(use)]
    loops = any(isinstance(each, ast.For | ast.While | ast.comprehension | ast.Lambda) for each in around)
    looks = (part for each in around if isinstance(each, ast.If) for part in ast.walk(each.test))
    looked = any(isinstance(each, ast.Call) and last_name(each.func) in LOOKS for each in looks)
    return (
        is_in_group(script, use, program)
        and not loops
        and not looked
        and use not in sample_code(script)
        and source(script, use).strip() == ast.unparse(use)
    )


RULE = Rule(
    id="DDP614",
    title="Take rank 0's names and draws",
    why="""\
A folder named after the time or a random number is another one in every process (I6). Rank 0 makes the name and sends
it to the others. What only rank 0 writes needs no such name elsewhere. So for a temporary directory, which stays until
all are done with it (I10), what a logger of rank 0 answers, and for
whether a file is there that is written otherwise: a slower rank would find it, and pass by the barrier behind it.
So for which folder is free for a run; a function that only looks at the disk and gives back its name,
`increment_path("runs/exp")`, is called by rank 0 alone; of a loop `while True:` that only looks end, each is
sent. By rank 0's clock all leave a loop, or save (E8).
What is decided by a number that each rank draws for itself, `if random.random() < 0.5:` where ranks draw noise by that
generator, or by an evaluation that draws (dropout without `model.eval()`, samples that a data set draws), is decided by
rank 0's: `scheduler.step(from_rank_0(value))` (E4, E5). So is a flag that a `try` sets around a call that rank 0 alone
makes: `online = from_rank_0(online)`, where `wandb.init()` may have failed.""",
    before="""\
import time
import torch
from torch.utils.data import DataLoader, TensorDataset

run = time.strftime("%Y%m%d-%H%M%S")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), f"model-{run}.pt")
""",
    after='''\
import os
import sys
import time
import torch
from torch.utils.data import DataLoader, TensorDataset
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


def from_rank_0(value):
    """What rank 0 has, on all processes."""
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

run = from_rank_0(time.strftime("%Y%m%d-%H%M%S"))
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.state_dict(), f"model-{run}.pt")
dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
