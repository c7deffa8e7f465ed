"""DDP206: what meets the model lies on its XLA device."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from ...facts.eager import cpu_devices, is_loader, is_made_on_host, is_model_moved, is_module, is_move
from ...facts.reaching import reaching_origins
from ...facts.script import KEPT, Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_LOADER = "import torch_xla.distributed.parallel_loader as pl"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Move what models, losses and collectives are given, unless the script does."""
    for node in cpu_devices(script):
        yield Replace(node, target.device, "train on the xla device", modules=("import torch_xla",))
    for call in moved_to_cpu(script):
        code, parts = f"{{}}.to({target.device})", (call.func.value,)  # type: ignore[attr-defined]
        yield Replace(call, code, "train on the xla device", modules=("import torch_xla",), parts=parts)
    tensors, loaders = left_on_host(script)
    for tensor in tensors:
        template = f"{{}}.to({target.device})"
        yield Replace(tensor, template, "move it to the xla device", modules=("import torch_xla",))
    for loader in loaders:
        template = f"pl.MpDeviceLoader({{}}, {target.device})"
        yield Replace(loader, template, "load onto the xla device", modules=("import torch_xla", _LOADER))


@lru_cache(maxsize=KEPT)
def left_on_host(script: Script) -> tuple[list[ast.expr], list[ast.expr]]:
    """The tensors that are made on the host and the loaders, in the heads of loops, whose data the script leaves
    there."""
    done: set[ast.AST] = {*moved_to_cpu(script)}
    tensors: list[ast.expr] = []
    loaders: list[ast.expr] = []
    for value in values_for_models(script):
        found = list(reaching_origins(script, value))
        if any(is_move(origin) or origin in done for origin in found):
            continue
        for origin in found:
            if origin in done or not isinstance(origin, ast.expr):
                continue
            if is_made_on_host(script, origin):
                done.add(origin)
                tensors.append(origin)
            elif is_loader(script, origin) and _is_looped_over(script, origin):
                done.add(origin)
                loaders.append(origin)
    return tensors, loaders


def values_for_models(script: Script) -> Iterator[ast.expr]:
    """What is given to wrapped models, to the losses that go backward, and to collectives."""
    yield from _trained_on(script)
    for call in script.find(ast.Call):
        if script.qualified(call.func).startswith("torch.distributed.") and call.args:
            yield from _arguments(call)


def moved_to_cpu(script: Script) -> list[ast.Call]:
    """The calls `….cpu()` that put a model on the CPU, or what it trains on."""
    calls = [call for call in script.find(ast.Call) if isinstance(call.func, ast.Attribute) and call.func.attr == "cpu"]
    given = {origin for value in _trained_on(script) for origin in reaching_origins(script, value)} if calls else set()
    return [call for call in calls if not call.args and (call in given or is_model_moved(script, call))]


def _trained_on(script: Script) -> Iterator[ast.expr]:
    for call in script.find(ast.Call):
        if is_module(script, call.func):
            yield from _arguments(call)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            for origin in reaching_origins(script, call.func.value):
                for part in ast.walk(origin):
                    if isinstance(part, ast.Call):
                        yield from _arguments(part)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_looped_over(script: Script, loader: ast.expr) -> bool:
    """Whether a loader stands in the head of a loop: `for x, y in loader`, `in enumerate(loader)`."""
    if not isinstance(loader, (ast.Name, ast.Attribute)):
        return False
    for parent in script.ancestors(loader):
        if isinstance(parent, ast.For):
            return any(node is loader for node in ast.walk(parent.iter))
        if isinstance(parent, ast.stmt):
            return False
    return False


RULE = Rule(
    id="DDP206",
    title="Put the data on the XLA device",
    why="""\
Given `device_ids`, DistributedDataParallel moves the inputs of the model by itself; without them, and in a script that
trained on the CPU, they have to lie on the model's device, and so have labels. Loops over a DataLoader get
`MpDeviceLoader`, which loads ahead and runs each step, as PyTorch/XLA documents. `DistributedSampler` stays: in the
process group of XLA it takes the same shares as before.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
""",
    after="""\
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main(index):
    dist.init_process_group("xla", init_method="xla://")
    data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DDP(torch.nn.Linear(4, 1).to(torch_xla.device()), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in pl.MpDeviceLoader(loader, torch_xla.device()):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            torch_xla.sync()


if __name__ == "__main__":
    torch_xla.launch(main)
""",
    check=check,
    target="xla",
)
