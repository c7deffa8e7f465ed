"""DDP212: processes and loaders of torch_xla in their current form."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.older_xla import is_in_sight
from ...facts.origins import origins
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_SPAWN = "torch_xla.distributed.xla_multiprocessing.spawn"
_LOADER = "torch_xla.distributed.parallel_loader.ParallelLoader"
_POSITIONS = ("fn", "args", "nprocs", "join", "daemon", "start_method")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace xmp.spawn and ParallelLoader."""
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        if name == _SPAWN:
            yield from _launched(call)
        elif name == _LOADER:
            yield from _loader(call)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "per_device_loader":
            yield from _looped(script, call, call.func.value)


def rewritten(script: Script) -> Iterator[ast.expr]:
    """What names xmp.spawn or ParallelLoader in calls whose new form does without that name."""
    for call in script.find(ast.Call):
        name, by_itself = script.qualified(call.func), isinstance(call.func, ast.Name)
        if (name == _SPAWN and _starts(call)) or (name == _LOADER and by_itself and _device(call) is not None):
            yield call.func


def _starts(call: ast.Call) -> bool:
    """Whether it is seen what a call of xmp.spawn starts."""
    return is_in_sight(call) and (bool(call.args) or any(word.arg == "fn" for word in call.keywords))


def _device(call: ast.Call) -> ast.expr | None:
    """The one device that a ParallelLoader is for, if it is seen."""
    devices = call.args[1] if len(call.args) == 2 and is_in_sight(call) else None
    one = isinstance(devices, (ast.List, ast.Tuple)) and len(devices.elts) == 1
    return devices.elts[0] if one and not isinstance(devices.elts[0], ast.Starred) else None  # type: ignore[union-attr]


def _launched(call: ast.Call) -> Iterator[Edit | Finding]:
    given = dict(zip(_POSITIONS, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if not _starts(call):
        remedy = "write xmp.spawn(function, args=(…))"
        yield Finding(RULE.id, "warning", call.lineno, "the arguments of xmp.spawn are not known", remedy)
        return
    kept = [name for name in ("args", "start_method") if name in given]
    words = ["{}", *(f"{name}={{}}" for name in kept)]
    processes = given.get("nprocs")
    message = "xmp.spawn has a newer name: use torch_xla.launch"
    if isinstance(processes, ast.Constant) and processes.value == 1:
        words.append("debug_single_process=True")
    elif processes is not None and not (isinstance(processes, ast.Constant) and processes.value is None):
        message += "; it takes all devices of the machine (nprocs may only be 1 or None by now)"
    parts = (given["fn"], *(given[name] for name in kept))
    yield Replace(call, f"torch_xla.launch({', '.join(words)})", message, modules=("import torch_xla",), parts=parts)


def _loader(call: ast.Call) -> Iterator[Edit | Finding]:
    device = _device(call)
    if device is None:
        remedy = "write MpDeviceLoader(loader, device) in every process"
        yield Finding(RULE.id, "warning", call.lineno, "ParallelLoader for several devices of one process", remedy)
        return
    owner = "{}.MpDeviceLoader" if isinstance(call.func, ast.Attribute) else "pl.MpDeviceLoader"
    modules = () if isinstance(call.func, ast.Attribute) else ("import torch_xla.distributed.parallel_loader as pl",)
    words = ["{}", "{}", *(f"{keyword.arg}={{}}" for keyword in call.keywords)]
    parts = (call.args[0], device, *(keyword.value for keyword in call.keywords))
    if isinstance(call.func, ast.Attribute):
        parts = (call.func.value, *parts)
    message = "ParallelLoader has a simpler form: use MpDeviceLoader"
    yield Replace(call, f"{owner}({', '.join(words)})", message, modules=modules, parts=parts)


def _looped(script: Script, call: ast.Call, loader: ast.expr) -> Iterator[Edit]:
    made = [origin for origin in origins(script, loader) if isinstance(origin, ast.Call)]
    rewritten = [edit for each in made if script.qualified(each.func) == _LOADER for edit in _loader(each)]
    if rewritten and all(isinstance(edit, Replace) for edit in rewritten):
        looped = any(isinstance(parent, ast.For) for parent in script.ancestors(call) if isinstance(parent, ast.stmt))
        statement = script.statement(call)
        in_head = looped and isinstance(statement, ast.For) and call in set(ast.walk(statement.iter))
        template = "{}" if in_head else "iter({})"
        yield Replace(call, template, "MpDeviceLoader is looped over itself", parts=(loader,))


RULE = Rule(
    id="DDP212",
    title="Launch and load in torch_xla's current form",
    why="""\
`torch_xla.launch` is what `xmp.spawn` was; how many processes there are is the runtime's business, and any `nprocs`
but 1 and None is an error by now. `MpDeviceLoader` is `ParallelLoader` for the one device that a process has. Told, and
rewritten with `--modernize`.""",
    before="""\
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_multiprocessing as xmp


def train(index, lr):
    device = torch_xla.device()
    model = torch.nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loader = torch.utils.data.DataLoader(torch.rand(64, 4), batch_size=8)
    parallel_loader = pl.ParallelLoader(loader, [device])
    for x in parallel_loader.per_device_loader(device):
        optimizer.zero_grad()
        model(x).mean().backward()
        xm.optimizer_step(optimizer)


if __name__ == "__main__":
    xmp.spawn(train, args=(0.1,), nprocs=8)
""",
    after="""\
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl


def train(index, lr):
    device = torch_xla.device()
    model = torch.nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loader = torch.utils.data.DataLoader(torch.rand(64, 4), batch_size=8)
    parallel_loader = pl.MpDeviceLoader(loader, device)
    for x in parallel_loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        xm.optimizer_step(optimizer)


if __name__ == "__main__":
    torch_xla.launch(train, args=(0.1,))
""",
    check=check,
    target="xla",
)
