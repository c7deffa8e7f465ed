"""DDP111: calls that move things to a numbered GPU, or that only a GPU understands."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from ...facts.devices import branches_of, inside_f_string, is_index, source
from ...facts.header import option_around
from ...facts.origins import assigned
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_NEEDS_GPU = {"get_device_name", "get_device_properties", "get_device_capability", "current_device", "Event", "Stream"}
_CHOOSE = "choose GPUs where it is started: CUDA_VISIBLE_DEVICES=0,1 torchrun …"
_OF_A_DEVICE = frozenset(
    f"torch.cuda.{name}"
    for name in (
        *("synchronize", "mem_get_info", "memory_allocated", "max_memory_allocated", "memory_reserved"),
        *("max_memory_reserved", "memory_summary", "memory_stats", "reset_peak_memory_stats"),
    )
)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rewrite the `.cuda()` calls and the GPU settings of one script."""
    dead = branches_of(script, target).dead
    for node in script.find(ast.Call, ast.Assign, ast.AugAssign, ast.Expr):
        if node in dead or inside_f_string(script, node):
            continue
        if isinstance(node, ast.Call):
            yield from _call(script, target, node)
        elif isinstance(node, ast.stmt) and _is_dropped(script, target, node):
            yield Delete(node, "drop the choice of a GPU: init_process_group has chosen this process's device")
    yield from _that_asks(script, [node for node in script.find(ast.Assign) if _is_dropped(script, target, node)], dead)


def _that_asks(script: Script, dropped: Sequence[ast.Assign], dead: Collection[ast.AST]) -> Iterator[Edit | Finding]:
    """What asks for the GPUs that `os.environ["CUDA_VISIBLE_DEVICES"] = …`, which goes, let a file see."""
    values = [node.value for node in dropped]
    always = all(option_around(script, each) is None for each in dropped)
    is_one = always and all(isinstance(each, ast.Constant) and str(each.value).isdigit() for each in values)
    for node in script.find(ast.Call, ast.Subscript) if values else ():
        if node in dead or not isinstance(node, ast.Call | ast.Subscript):
            continue
        if isinstance(node, ast.Call) and script.qualified(node.func) == "torch.cuda.device_count":
            if is_one and (never := _for_several(script, node)) is not None:
                yield Delete(never, "leave out what is for several GPUs: the script has chosen one")
            elif is_one:
                yield Replace(node, "1", "count the one GPU that the script has chosen")
            else:
                yield Finding(RULE.id, "warning", node.lineno, "this counts all GPUs of the machine now", _CHOOSE)
        elif isinstance(node, ast.Subscript) and _reads_choice(script, node):
            same = {ast.unparse(each) for each in values}
            near = always and all(script.scope(each) is script.scope(node) for each in dropped)
            near = near and not any(_is_given_again(script, value, node) for value in values)
            if len(same) == 1 and near and isinstance(values[0], ast.Constant | ast.Name | ast.Attribute):
                taken = ast.get_source_segment(script.text, values[0]) or same.pop()
                yield Replace(node, taken, "take what the script has chosen: the variable is not set any more")
            else:
                message = "CUDA_VISIBLE_DEVICES is not set by the script any more"
                yield Finding(RULE.id, "refused", node.lineno, message, "keep what it holds in a variable of its own")


def _is_given_again(script: Script, value: ast.expr, read: ast.expr) -> bool:
    """Whether what a variable was set to may be something else where that is read."""
    code, above = ast.unparse(value), value.lineno
    stored = (each for each in script.find(ast.Name, ast.Attribute) if isinstance(each.ctx, ast.Store))
    return any(ast.unparse(each) == code and above < each.lineno <= read.lineno for each in stored)


def _for_several(script: Script, count: ast.Call) -> ast.If | None:
    """The block that is run for more than one GPU: `if torch.cuda.device_count() > 1:`."""
    test = script.parents[count]
    block = script.parents[test]
    several = isinstance(block, ast.If) and block.test is test and not block.orelse
    several = several and getattr(script.parents[block], "orelse", None) != [block]  # an `elif` is no statement
    return block if several and ast.unparse(test) == f"{ast.unparse(count)} > 1" else None  # type: ignore[return-value]


def _reads_choice(script: Script, node: ast.Subscript) -> bool:
    is_key = isinstance(node.slice, ast.Constant) and node.slice.value == "CUDA_VISIBLE_DEVICES"
    return is_key and isinstance(node.ctx, ast.Load) and script.qualified(node.value) == "os.environ"


def _call(script: Script, target: Target, call: ast.Call) -> Iterator[Edit | Finding]:
    name = script.qualified(call.func)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method == "cuda" and not name.startswith("torch.") and "cuda" not in script.defined:
        yield from _moved(script, target, call)
    elif method == "to" and call.args and is_index(call.args[0]):
        yield _device(target, call.args[0])
    elif name == "torch.cuda.device" and call.args and is_index(call.args[0]):
        yield Replace(call.args[0], "-1", "stay on this process's device")
    elif target.has_cuda_words and name in _OF_A_DEVICE and len(call.args) == 1 and is_index(call.args[0]):
        yield Replace(call, "{}()", "ask this process's device", parts=(call.func,))
    elif not target.module and name.startswith("torch.cuda.") and name.rpartition(".")[2] in _NEEDS_GPU:
        remedy = "run it only if torch.cuda.is_available()"
        yield Finding(RULE.id, "warning", call.lineno, f"{name} needs a GPU", remedy)
    if name == "os.environ.update" and target.has_cuda_words and len(call.args) == 1:
        entries = call.args[0] if isinstance(call.args[0], ast.Dict) else ast.Dict([], [])
        pairs = zip(entries.keys, entries.values, strict=True)
        if len(entries.keys) > 1 and any(key is not None and _hides_gpus(script, key, value) for key, value in pairs):
            message = "every process is left with the same GPU, which NCCL refuses (P4)"
            yield Finding(RULE.id, "warning", call.lineno, message, "take CUDA_VISIBLE_DEVICES out of it")
    for keyword in call.keywords:
        if keyword.arg == "device" and method != "cuda" and is_index(keyword.value):
            yield _device(target, keyword.value)


def _moved(script: Script, target: Target, call: ast.Call) -> Iterator[Edit]:
    """`.cuda(…)` without its number, or what takes its place."""
    assert isinstance(call.func, ast.Attribute)
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    device = call.args[0] if call.args else options.get("device")
    waits = call.args[1] if len(call.args) > 1 else options.get("non_blocking")
    if not target.is_accelerator:
        yield Replace(call, "{}.cpu()", "stay on the CPU", parts=(call.func.value,))
    elif not target.has_cuda_words:
        template = f"{{}}.to({target.device}" + (", non_blocking={})" if waits else ")")
        parts = (call.func.value, waits) if waits else (call.func.value,)
        message = f"use the {target.name} device"
        yield Replace(call, template, message, modules=target.device_modules, parts=parts)
    elif device is not None and not _is_device_object(script, device):
        template = "{}(non_blocking={})" if waits else "{}()"
        parts = (call.func, waits) if waits else (call.func,)
        yield Replace(call, template, "use this rank's GPU, not a numbered one", parts=parts)


def _is_device_object(script: Script, device: ast.expr) -> bool:
    """Whether an argument is a device that DDP103 sees to, not the number of one."""
    if isinstance(device, ast.Constant):
        return device.value is None or isinstance(device.value, str)
    name = source(script, device)
    numbers = (node for node in script.find(ast.Assign) if is_index(node.value))
    return name.endswith("device") and name not in {source(script, node.targets[0]) for node in numbers}


def _device(target: Target, node: ast.expr) -> Replace:
    return Replace(node, target.device, f"use the {target.name} device", modules=target.device_modules)


def _is_dropped(script: Script, target: Target, node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        variable, value = node.targets[0], node.value
        named = isinstance(variable, ast.Subscript) and script.qualified(variable.value) == "os.environ"
        return named and target.has_cuda_words and _hides_gpus(script, variable.slice, value)  # type: ignore[attr-defined]
    if isinstance(node, ast.AugAssign):
        named = script.qualified(node.target) == "os.environ" and target.has_cuda_words
        return named and any(_hides_gpus(script, *each) for each in _only_entry(node.value))
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    name = script.qualified(node.value.func)
    if name in ("os.environ.setdefault", "os.putenv") and len(node.value.args) == 2 and target.has_cuda_words:
        return _hides_gpus(script, *node.value.args)
    if name == "os.environ.update" and target.has_cuda_words:
        return any(_hides_gpus(script, *each) for each in _only_entry(node.value))
    return name in _dropped(target)


def _only_entry(node: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The key and value of what has one: `{"A": "0"}`, `update({"A": "0"})`, `update(A="0")`."""
    if isinstance(node, ast.Call) and not node.args and len(node.keywords) == 1 and node.keywords[0].arg:
        yield ast.Constant(node.keywords[0].arg), node.keywords[0].value
    elif isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        yield from _only_entry(node.args[0])
    elif isinstance(node, ast.Dict) and len(node.keys) == 1 and node.keys[0] is not None:
        yield node.keys[0], node.values[0]


def _dropped(target: Target) -> Iterator[str]:
    """The functions whose calls go: what torch has no module for cannot do what they do for GPUs."""
    yield "torch.cuda.set_device"
    yield f"{target.module}.set_device"
    if not target.module:
        yield "torch.cuda.synchronize"
        if target.is_accelerator:
            yield "torch.cuda.empty_cache"


def _hides_gpus(script: Script, variable: ast.expr, value: ast.expr) -> bool:
    """Whether CUDA_VISIBLE_DEVICES is set to anything but a list of several GPUs."""
    several = isinstance(value, ast.Constant) and "," in str(value.value)
    made = assigned(script, variable) if isinstance(variable, ast.Name) else [variable]
    named = any(isinstance(each, ast.Constant) and each.value == "CUDA_VISIBLE_DEVICES" for each in made)
    return named and not several


RULE = Rule(
    id="DDP111",
    title="Move to this rank's device",
    why="""`.cuda(0)` and `torch.cuda.set_device(0)` would put every process on the same GPU; `.cuda()` means the
one that init_process_group has made current (P4). For the other targets `.cuda()` becomes the move to their device,
and what only a GPU understands goes away (X8).""",
    before="""\
import torch

gpu = 0
torch.cuda.set_device(gpu)
model = torch.nn.Linear(4, 1).cuda(gpu)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4).cuda(gpu, non_blocking=True)).mean()
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

init_process_group("nccl")

gpu = 0
model = torch.nn.Linear(4, 1).cuda()
model = DistributedDataParallel(model, device_ids=[get_local_rank()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4).cuda(non_blocking=True)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
)
