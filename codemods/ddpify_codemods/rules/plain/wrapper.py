"""DDP602: models are wrapped in torch's DistributedDataParallel, which training calls and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ...facts.called_modules import called_model, last_name
from ...facts.flow.frames import FlowFacts
from ...facts.flow.program import Program
from ...facts.flow.recomputed import reentrant
from ...facts.flow.values import root_of
from ...facts.flow.wrapped_names import UNUSED, Wrapped, Wrapping
from ...facts.flow.wrapping import wrapping
from ...facts.moved_to_host import moves_models_to_host
from ...facts.script import Script
from ...plain_words import TORCH, Words
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .late_moves import moved_late
from .own_decisions import decided_alone
from .words import REMEDY, is_here, normalizes, program_of

_CLASS = ("from torch.nn.parallel import DistributedDataParallel",)
_NAME = re.compile(r"\w+")
_BEGINS = re.compile("init|reset")  # what gives layers their first values, before the wrapper is made
_FIRST_VALUES = re.compile(r"\binit\b|(?:normal|constant|ones|zeros|uniform|fill)_\(")
_NORMALIZING = re.compile(r"^torch\.nn\.(?:\w+\.)*BatchNorm[123]d$")
_MESSAGE = "call the wrapped model in training"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Wrap each model before its optimizer is made, and call the wrapper where a step follows."""
    program = program_of(script)
    found = wrapping(program)
    for problem in found.problems:
        if is_here(script, problem.script):
            line = getattr(problem.node, "lineno", 1)
            yield Finding(RULE.id, "refused", line, problem.reason, REMEDY)
    yield from moved_late(script)
    if synchronized(program, target):
        yield from decided_alone(RULE.id, script, "BatchNorm of all ranks' batches")
        yield from _asked_by_class(script)
    if target.words is not TORCH:
        yield from _changed_by_apex(script, program, target.words)
    if not (program.fully_sharded or target.words.averaging):
        several = next((each for each in found.models if each.each), None)
        if several is not None and (synchronized(program, target) or target.words.name != "torch"):
            message = f"the models are those of a list, {several.model}"
            yield Finding(RULE.id, "refused", several.at[0].lineno, message, REMEDY)
            return
        yield from _edits(script, found, program, target)
        if any(each.leaves_out for each in found.models):
            yield from _recomputed(script, program)
        yield from _of_slopes(script, program)
        yield from _own_buffers(script, found, program)
    yield from _synchronized(script, program, target.words)


def _changed_by_apex(script: Script, program: Program, words: Words) -> Iterator[Finding]:
    """Where apex.amp looks at gradients before another engine has averaged them, and skips a step on one rank alone."""
    for call in program.followed.found.by_apex:
        if call in script.parents:
            message = f"apex.amp looks at gradients where a backward pass ends, {words.name} may average them later"
            yield Finding(RULE.id, "refused", call.lineno, message, "use torch.amp, or --target cuda")


def _recomputed(script: Script, program: Program) -> Iterator[Finding]:
    """Where torch.utils.checkpoint runs a backward pass within one, for parameters that the wrapper looks for."""
    for there, call in reentrant(program):
        if is_here(script, there):
            message = (
                "DistributedDataParallel with find_unused_parameters=True raises in the backward pass of this, where "
                "it computes layers of its model again"
            )
            yield Finding(RULE.id, "warning", call.lineno, message, "pass it use_reentrant=False")


def _of_slopes(script: Script, program: Program) -> Iterator[Finding]:
    """Where gradients of inputs are all that a loss is made of."""
    for (call, _), problem in program.followed.found.of_slopes.items():
        if is_here(script, problem.script):
            remedy = "where it does, add 0 times the mean of the outputs to the loss, or use --style exact"
            yield Finding(RULE.id, "warning", call.lineno, problem.reason, remedy)


def _own_buffers(script: Script, found: Wrapping, program: Program) -> Iterator[Finding]:
    """Where each rank draws a buffer of its own, and a wrapper that keeps buffers does not send that of rank 0."""
    kept = {made for each in found.models if keeps_buffers(program, each.made) for made in each.made}
    for module, problem in program.followed.found.drawn_buffers.items():
        if root_of(module).made in kept and is_here(script, problem.script):
            yield Finding(RULE.id, "refused", getattr(problem.node, "lineno", 1), problem.reason, REMEDY)


def _asked_by_class(script: Script) -> Iterator[Finding]:
    """Where layers are told apart by a class that they no longer have: SyncBatchNorm is no BatchNorm2d."""
    for node in script.find(ast.Attribute, ast.Name):
        if not _NORMALIZING.search(script.qualified(node)) or isinstance(script.parents[node], ast.Attribute):
            continue
        test = next((each for each in script.ancestors(node) if isinstance(each, ast.Call | ast.Compare)), None)
        asks = isinstance(test, ast.Compare) or (test is not None and ast.unparse(test.func) == "isinstance")
        if asks and test is not None and not _gives_first_values(script, test):
            knows_both = any(each.attr == "SyncBatchNorm" for each in ast.walk(test) if isinstance(each, ast.Attribute))
            if not knows_both:
                message = f"`{ast.unparse(test)}` is false for the SyncBatchNorm that --sync-batchnorm makes of it"
                yield Finding(RULE.id, "refused", test.lineno, message, "ask for torch.nn.SyncBatchNorm, too")


def _gives_first_values(script: Script, test: ast.expr) -> bool:
    """Whether a test is one of a function, or above lines, that give layers their first values: `nn.init.ones_(…)`."""
    branch = script.parents[test]
    inside = "\n".join(map(ast.unparse, branch.body)) if isinstance(branch, ast.If) else ""
    return bool(_BEGINS.search(getattr(script.scope(test), "name", "")) or _FIRST_VALUES.search(inside))


def _edits(script: Script, found: Wrapping, program: Program, target: Target) -> Iterator[Edit | Finding]:
    for model in found.models:
        for at in model.at if is_here(script, model.script) else ():
            yield _wrapped(model, at, program, target)
    for node, (other, name) in found.calls.items():
        if is_here(script, other):
            yield Replace(node, name, _MESSAGE)
    for node, other in found.modules.items():
        if is_here(script, other):
            yield _unwrapped(node, program, target.words)
    for node, other in found.returned.items():
        if is_here(script, other):
            yield Replace(node, UNUSED, "keep the wrapper, whose model the function gives back")


def _unwrapped(node: ast.expr, program: Program, words: Words) -> Replace | Finding:
    """Take the model out of the wrapper that a parameter holds, which is the model itself where nothing was wrapped."""
    attributes = (each for script in program.scripts for each in script.find(ast.Attribute))
    if words.may_not_wrap and any(each.attr == "module" and isinstance(each.ctx, ast.Store) for each in attributes):
        message = "the model may have a `module` of its own, as wrappers have: which one this is cannot be told"
        return Finding(RULE.id, "refused", node.lineno, message, "give that attribute another name")
    template = "getattr({0}, 'module', {0})" if words.may_not_wrap else "{0}.module"
    return Replace(node, template.format(ast.unparse(node)), "take the model out of its wrapper")


def _wrapped(model: Wrapped, at: ast.stmt, program: Program, target: Target) -> Insert:
    moved = f".to({target.words.device or target.device})" if model.is_moved_later and target.is_accelerator else ""
    arguments = [f"{model.each or model.model}{moved}"]
    if target.plain_wrapper_arguments:
        arguments.append(target.plain_wrapper_arguments)
    if target.plain_moves_inputs and program.followed.found.in_parallel:
        arguments.append(_moves_inputs(model, target))
    if keeps_buffers(program, model.made):
        arguments.append("broadcast_buffers=False")
    if model.leaves_out:
        arguments.append("find_unused_parameters=True")
    converts = synchronized(program, target)
    if converts and target.words.synchronized:
        arguments.append(target.words.synchronized)
    made = target.words.model.format(", ".join(arguments))
    code = f"{model.name} = [{made} for {model.each} in {model.model}]" if model.each else f"{model.name} = {made}"
    if converts and not target.words.synchronized:
        code = f"{model.model} = torch.nn.SyncBatchNorm.convert_sync_batchnorm({model.model})\n{code}"
    classes = _CLASS if "DistributedDataParallel" in code else target.words.imports
    message = f"make {model.model} distributed as {model.name}"
    return Insert(at, code, message, model.side, modules=classes)


def _moves_inputs(model: Wrapped, target: Target) -> str:
    """The argument by which the wrapper moves its inputs, which raises for a model that a switch leaves on the CPU."""
    if not target.may_stay_on_host or model.is_moved_later:
        return target.plain_moves_inputs
    moved = f'next({model.each or model.model}.parameters()).device.type != "cpu"'
    return f"{target.plain_moves_inputs} if {moved} else None"


def sends_from_host(scripts: Sequence[Script]) -> bool:
    """Whether buffers of a model may be sent that the program has moved to the CPU again."""
    return moves_models_to_host(scripts) and normalizes(program_of(scripts[0]))


def synchronized(program: Program, target: Target) -> bool:
    """Whether BatchNorm is to see the batches of all ranks."""
    return program.sync_batchnorm and target.synchronizes_batch_norm and normalizes(program)


def keeps_buffers(program: Program, made: frozenset[ast.AST]) -> bool:
    """Whether forwards may not send the buffers of a model: where ranks do not call the wrapper equally often (in an
    evaluation), or a second forward would change what the backward pass of the first one needs."""
    found = program.followed.found
    reached = [calls for (_, model), calls in found.reached.items() if model in made]
    several = any(len(calls) > 1 or calls - found.training_forwards for calls in reached)
    evaluated = {*found.evaluations} & found.training_forwards
    return (
        several or bool(made & found.repeated) or any(made & found.called_models.get(call, set()) for call in evaluated)
    )


def _synchronized(script: Script, program: Program, words: Words) -> Iterator[Insert | Finding]:
    """Evaluate with the running statistics of rank 0, which are those that it saves."""
    if not normalizes(program):
        return
    found = program.followed.found
    done: set[tuple[ast.stmt, str]] = set()
    for call, loops in sorted(found.evaluations.items(), key=lambda each: each[0].lineno):
        models = found.called_models.get(call, set())
        if models and models <= found.without_buffers:
            continue
        for loop in loops:
            if loop is None:
                other = found.forwards[call][0]
                at, model = other.statement(call), _evaluated(other, call)
            else:
                other, at, model = loop[1], loop[1].statement(loop[0]), loop[2]
            at = _around(other, at, model, found)
            if is_here(script, other) and (at, model) not in done:
                done.add((at, model))
                yield from _broadcast(script, at, model, words)


def _evaluated(script: Script, call: ast.Call) -> str:
    """The code of a model that is called; `net in nets` in a comprehension over models, "" in another one."""
    model = called_model(call)
    name = model.id if isinstance(model, ast.Name) else ""
    for parent in script.ancestors(call):
        for part in getattr(parent, "generators", ()):
            if isinstance(part.target, ast.Name) and part.target.id == name and isinstance(part.iter, ast.Name):
                return f"{name} in {part.iter.id}"
            if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(part.target)):
                return ""
    return ast.unparse(model)


def _broadcast(script: Script, at: ast.stmt, model: str, words: Words) -> Iterator[Insert | Finding]:
    if not model:
        message = "the model whose BatchNorm statistics an evaluation needs has no name here"
        yield Finding(RULE.id, "refused", at.lineno, message, REMEDY)
        return
    buffers = f"{model}.buffers()"
    if " in " in model:
        buffers = f"[buffer for {model} for buffer in {model.partition(' in ')[0]}.buffers()]"
    code = f"for buffer in {buffers}:\n    {words.broadcast.format('buffer')}"
    message = "evaluate with the running statistics of rank 0"
    yield Insert(at, code, message, modules=words.imports)


def _around(script: Script, at: ast.stmt, model: str, found: FlowFacts) -> ast.stmt:
    """The statement, the `with torch.no_grad():` that begins with it, or a loop around it that only samples."""
    parent = script.parents[at]
    begins = isinstance(parent, ast.With) and parent.body[0] is at
    samples = isinstance(parent, ast.For | ast.While) and at in parent.body and _samples(script, parent, model, found)
    return _around(script, parent, model, found) if begins or samples else at  # type: ignore[arg-type]


def _samples(script: Script, loop: ast.For | ast.While, model: str, found: FlowFacts) -> bool:
    """Whether a loop neither trains nor sets the model, nor runs through batches that may change its statistics."""
    names = set(_NAME.findall(model))
    for each in ast.walk(loop):
        if each in found.training_statements or each in found.loops:
            return False
        if isinstance(each, ast.Call) and last_name(each.func) in script.defined - {"forward"}:
            return False
        stored = not isinstance(getattr(each, "ctx", ast.Load()), ast.Load)
        if stored and not names.isdisjoint(_NAME.findall(ast.unparse(each))):
            return False
    return bool(names)


RULE = Rule(
    id="DDP602",
    title="Wrap the model in torch's DistributedDataParallel",
    why="""\
DistributedDataParallel averages the gradients of the ranks. The model keeps its name, so that its parameters, its
attributes, evaluations and checkpoints stay what they were, and load in the original (M1-M3, I7). What is called in
training is the wrapper. Where evaluations call it too, or a backward pass follows several forwards, buffers are not
sent in each forward (M8): ranks would wait for each other, or change what the backward pass needs. Several models are
wrapped each (M17), and called by their wrapper where a step takes the gradients: a discriminator in its own step, not
in the generator's.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

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
    torch.save(model.state_dict(), "model.pt")
dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
