"""DDP103: device strings name this rank's GPU, not a numbered one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import (
    Branches,
    branches_of,
    indexed_string,
    inside_f_string,
    is_index,
    quoted_like,
    second_gpu,
    source,
)
from ...facts.devices_of_the_run import made_of_setting, moved_to_setting
from ...facts.numbered_devices import numbered_devices, second_number
from ...facts.places import asks_which_device, device_place, is_device_call
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

# The kinds of expressions that name a device.
_NAMING = (ast.Constant, ast.JoinedStr, ast.BinOp, ast.Call)
_OF_THE_RUN = "take the kind of the device that the run names, and this rank's own"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rename the devices of one script for a target."""
    second = second_gpu(script) or second_number(script)
    if target.module and second is not None:
        remedy = "put the whole model on one device; model parallel training is not converted"
        message = "the script spreads its work over several GPUs by number"
        yield Finding(RULE.id, "refused", second.lineno, message, remedy)
        return
    yield from _numbered(script, target)
    yield from _own_device(script, target) if target.module else _no_gpu(script, target)


def _numbered(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Name the device where a number stands for it: `device = 0 if torch.cuda.is_available() else "cpu"`."""
    branches = branches_of(script, target)
    for node, used in numbered_devices(script).items():
        above = (each for each in script.ancestors(node) if isinstance(each, ast.expr))
        if node in branches.dead or (not target.module and any(_device_call(branches, each) for each in above)):
            continue
        if used is not None:
            message = f"a GPU's number is a device here, and a number in line {used.lineno}: every rank would take it"
            yield Finding(RULE.id, "refused", node.lineno, message, 'keep the device in a variable of its own: "cuda"')
        else:
            message = "use this rank's GPU, not a numbered one"
            yield Replace(node, target.device, message, modules=target.device_modules)


def _own_device(script: Script, target: Target) -> Iterator[Edit]:
    message = "use this rank's GPU, not a numbered one"
    branches = branches_of(script, target)
    for node in script.find(*_NAMING):
        if inside_f_string(script, node) or _is_key(script, node):
            continue
        if indexed_string(node) or indexed_string(node, target.device_type):
            yield Replace(node, quoted_like(script, node, target.device_type), message)
        elif isinstance(node, ast.Call) and is_device_call(script, node) and node.args:
            if is_index(node.args[0]):
                yield Replace(node.args[0], target.device, message)
            elif len(node.args) + len(node.keywords) == 2:
                yield Replace(node, "{}({})", message, parts=(node.func, node.args[0]))
            elif made_of_setting(script, node):
                yield Replace(node, "{}({}({}).type)", _OF_THE_RUN, parts=(node.func, node.func, node.args[0]))
        elif isinstance(node, ast.Call) and is_device_call(script, node) and (kind := _named_kind(node)):
            yield Replace(node, "{}({})", message, parts=(node.func, kind))
        elif target.renames and _means_gpu(branches, node):
            yield Replace(node, quoted_like(script, node, target.device_type), f"use the {target.name} device")
    for setting in script.find(ast.Subscript, ast.Call):
        if not inside_f_string(script, setting) and moved_to_setting(script, setting):
            yield Replace(setting, "torch.device({}).type", _OF_THE_RUN, modules=("import torch",))


def _is_key(script: Script, node: ast.AST) -> bool:
    """Whether a device is one that tensors were saved from: `map_location={"cuda:0": device}`."""
    parent = script.parents[node]
    return isinstance(parent, ast.Dict) and node in parent.keys


def _means_gpu(branches: Branches, node: ast.expr) -> bool:
    """Whether an expression is "cuda", in a place where that is a device."""
    if not isinstance(node, ast.Constant) or node.value != "cuda":
        return False
    return bool(device_place(branches, node)) or asks_which_device(branches.script, node)


def _no_gpu(script: Script, target: Target) -> Iterator[Edit]:
    branches = branches_of(script, target)
    done: set[ast.AST] = set(branches.dead)
    for node in script.find(*_NAMING, ast.IfExp):
        if node in done or inside_f_string(script, node):
            continue
        if script.in_converted and (named := _kind_of(script, node)) is not None:
            yield Replace(node, "{}({})", "take the device that the run names", parts=(node.func, named))  # type: ignore[attr-defined]
            done.update(ast.walk(node))
            continue
        template = _device_call(branches, node) or _device_string(branches, node)
        if template:
            modules = target.device_modules if target.device in template else ()
            yield Replace(node, template, f"use the {target.name} device", modules=modules)
            done.update(ast.walk(node))


def _kind_of(script: Script, node: ast.AST) -> ast.expr | None:
    """What a device is made of whose kind alone a conversion has taken: `torch.device(torch.device(name).type)`."""
    is_made = isinstance(node, ast.Call) and is_device_call(script, node) and len(node.args) == 1
    kind = node.args[0] if is_made else None  # type: ignore[attr-defined]
    inner = kind.value if isinstance(kind, ast.Attribute) and kind.attr == "type" else None
    if not isinstance(inner, ast.Call) or not is_device_call(script, inner) or len(inner.args) != 1:
        return None
    return inner.args[0]


def _device_call(branches: Branches, node: ast.expr) -> str:
    """What a `torch.device(…)` that names a GPU becomes; "" for anything else."""
    if not isinstance(node, ast.Call) or not is_device_call(branches.script, node):
        return ""
    given = node.args[0] if node.args else _named_kind(node)
    if given is None:
        return ""
    target, numbered = branches.target, is_index(given)
    if not numbered and branches.device(given) != target.device_type:
        return ""
    if not target.names_device:
        return target.device if branches.names_gpu(given) or numbered else ""
    two = len(node.args) + len(node.keywords) == 2
    return f"{source(branches.script, node.func)}({target.device})" if numbered or two else ""


def _named_kind(call: ast.Call) -> ast.expr | None:
    """The kind of a device whose number is given by name, too: `torch.device(type="cuda", index=0)`."""
    words = {word.arg: word.value for word in call.keywords}
    return words["type"] if not call.args and words.keys() == {"type", "index"} else None


def _device_string(branches: Branches, node: ast.expr) -> str:
    """What a string that names a GPU becomes where a device is asked for; "" for anything else."""
    target = branches.target
    decided = isinstance(node, ast.IfExp) and branches.truth(node.test) is not None
    if decided or not branches.names_gpu(node) or branches.device(node) != target.device_type:
        return ""
    place = device_place(branches, node)
    if place == "device" and not target.names_device:
        return target.device
    kind = target.load_device if place == "file" else target.device_type
    return quoted_like(branches.script, node, kind) if place else ""


RULE = Rule(
    id="DDP103",
    title="Use this rank's device",
    why="""A numbered GPU would be the same one for every process, and NCCL refuses that (P4); a number that
stands for a device, as in `0 if torch.cuda.is_available() else "cpu"`, is one, too. init_process_group
has made this process's own GPU the current one, so that "cuda" and `.cuda()` mean it. Of a device that an option or a
file of settings names in the run, as "cuda:0", the kind is taken: `torch.device(torch.device(args.device).type)`. For
other targets the strings that pick a GPU name that target's device; what runs without a GPU stays as it is.""",
    before="""\
import torch
from torch import nn

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    get_local_rank,
    init_process_group,
)
from torch import nn

init_process_group("nccl")

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
model = DistributedDataParallel(model, device_ids=[get_local_rank()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
)
