"""DDP610: what cannot be followed, or would be other numbers on each rank, is refused."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ...facts.flow.frames import FlowFacts
from ...facts.flow.handlers import GOES_ON, stops
from ...facts.flow.never_taken import never_taken
from ...facts.reach import reached_code, run_alone
from ...facts.script import KEPT, Script
from ...rule import Edit, Finding, Rule
from ...targets import Target
from .words import REMEDY, is_here, program_of


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse what following the program could not explain."""
    followed = program_of(script).followed
    seen: set[tuple[int, str]] = set()
    for problem in followed.problems:
        line = getattr(problem.node, "lineno", 1)
        if is_here(script, problem.script) and (line, problem.reason) not in seen:
            seen.add((line, problem.reason))
            remedy = "let the exception end the script, or " + REMEDY if problem.reason == GOES_ON else REMEDY
            yield Finding(RULE.id, "refused", line, problem.reason, remedy)
    scripts = program_of(script).scripts
    runs = _running(tuple(scripts)) | followed.found.backwards.keys()
    closures = {
        call for each in scripts for call in _backward_passes(each) if call in runs and any(_closure(each, call))
    }
    told = followed.problems or any(call in closures for call in _backward_passes(script))
    if script.is_entry and not followed.found.training and not told:
        message = "no DataLoader is seen whose batches are trained on, so there is nothing that a sampler could divide"
        yield Finding(RULE.id, "refused", 1, message, REMEDY)
    for call in _backward_passes(script):
        if call in closures:
            yield from _closure(script, call)
        elif call in runs - followed.found.backwards.keys() and never_taken(program_of(script), script, call):
            message = "this training step is never taken, as the function around it is called: it stays as it is"
            yield Finding(
                RULE.id, "note", call.lineno, message, "none needed; call it otherwise only before converting"
            )
        elif call in runs - followed.found.backwards.keys():
            message = "this training step is not reached when the program is followed from its first line"
            yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
    yield from (each for each in _caught(script, followed.found) if (each.line, GOES_ON) not in seen)


def _backward_passes(script: Script) -> Iterator[ast.Call]:
    return (
        call for call in script.find(ast.Call) if isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
    )


@lru_cache(maxsize=4)  # asked for each file of a program
def _running(scripts: tuple[Script, ...]) -> frozenset[ast.Call]:
    return frozenset(call for each in scripts for call in _backward_passes(each) if _may_run(each, call, scripts))


def _may_run(script: Script, call: ast.Call, scripts: Sequence[Script]) -> bool:
    """Whether the function that a call is in is named anywhere in what the program may reach."""
    around = [each for each in script.ancestors(call) if isinstance(each, ast.FunctionDef)]
    if not around:
        return True
    reached = _reached(tuple(scripts))
    if around[-1] in run_alone(scripts, script) or (reached is not None and not any(e in reached for e in around)):
        return False
    is_method = any(isinstance(each, ast.ClassDef) for each in script.ancestors(around[-1]))
    return any(
        _stands_for(other, node, around[-1].name, is_here(other, script), is_method)
        for other in scripts
        if around[-1].name in _named(other)
        for node in other.nodes
    )


@lru_cache(maxsize=KEPT)
def _reached(scripts: tuple[Script, ...]) -> frozenset[ast.AST] | None:
    """The functions that a program may reach, those of its first file among them; None where more may be used."""
    found = reached_code(scripts)
    return None if found is None else frozenset(found).union(scripts[0].find(ast.FunctionDef))


@lru_cache(maxsize=KEPT)
def _named(script: Script) -> frozenset[str]:
    """All that a file names."""
    names = {node.id for node in script.find(ast.Name)} | {node.attr for node in script.find(ast.Attribute)}
    return frozenset(names | {node.name for node in script.find(ast.alias)})


def _stands_for(script: Script, node: ast.AST, name: str, is_defined_here: bool, is_method: bool) -> bool:
    """Whether this may be a function, by its name or as `module.name`: `net.train` is not the function `train`."""
    if isinstance(node, ast.Name):
        return node.id == name and (is_defined_here or is_method or bool(_imported(script) & {name, "*"}))
    if isinstance(node, ast.alias):
        return node.name == name and node.asname is not None
    if not isinstance(node, ast.Attribute) or node.attr != name:
        return False
    owner: ast.expr = node.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    is_module = not isinstance(owner, ast.Name) or owner.id in _imported(script) or "import_module" in script.text
    return is_method or is_module


def _imported(script: Script) -> frozenset[str]:
    """The names that a file's imports give, those of its own package too; `*` for all of a module's."""
    return frozenset(alias.asname or alias.name.split(".")[0] for node in script.imports for alias in node.names)


def _closure(script: Script, call: ast.Call) -> Iterator[Finding]:
    """A backward pass in a function that an optimizer calls, as often as it likes."""
    for parent in script.ancestors(call):
        if isinstance(parent, ast.FunctionDef):
            given = any(
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "step"
                and any(ast.unparse(each) == parent.name for each in (*node.args, *(w.value for w in node.keywords)))
                for node in script.nodes
            )
            if given:
                message = "the optimizer calls this as often as its own numbers say, which differ from rank to rank"
                yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)


def _caught(script: Script, found: FlowFacts) -> Iterator[Finding]:
    """An exception of one rank that the loop goes on after."""
    for call in found.backwards:
        for parent in script.ancestors(call) if call in script.parents else ():
            if isinstance(parent, ast.Try) and any(
                not stops(script, each) and each not in found.ended for each in parent.handlers
            ):
                remedy = "let the exception end the script, or " + REMEDY
                yield Finding(RULE.id, "refused", parent.lineno, GOES_ON, remedy)
            if isinstance(parent, ast.FunctionDef | ast.Module):
                break


RULE = Rule(
    id="DDP610",
    title="A loss or a number that cannot be followed",
    why="""\
Plain code divides what is a mean or a sum over samples. A loss of some samples of a batch, a decision that each rank
would take for itself (E4), data that is sliced by hand (D13), numbers of operations that are not known: what these
would become is another training, so they are refused. A loss that couples the samples of a batch (L7) is computed of
the batch of all ranks (DDP639), unless the model itself couples them.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(64, 4)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    loss = model(x[:4]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="",
    check=check,
    target="cpu",
)
