"""DDP214: tensor types of the GPU in a script that becomes plain torch_xla code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import branches_of, inside_f_string
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target
from ..convert.tensor_types import TYPE

_DTYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}
_MODULES = ("import torch", "import torch_xla")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Make the tensors on the host and move them; refuse a type that is kept for later."""
    dead = branches_of(script, target).dead
    for node in script.nodes:
        if node in dead or inside_f_string(script, node):
            continue
        name = script.qualified(node) if isinstance(node, (ast.Attribute, ast.Name)) else ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
        found = TYPE.fullmatch(name)
        if found and found[1] in _DTYPES and isinstance(node, ast.expr):
            yield _used(script, target, node, found[1])


def _used(script: Script, target: Target, node: ast.expr, name: str) -> Edit | Finding:
    call = script.parents[node]
    if isinstance(call, ast.Call) and call.func is node and not call.keywords:
        template = f"torch.{name}({', '.join(['{}'] * len(call.args))}).to({target.device})"
        return Replace(call, template, "use the xla device", modules=_MODULES, parts=tuple(call.args))
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "type":
        template = f"{{}}.to({target.device}, torch.{_DTYPES[name]})"
        return Replace(call, template, "use the xla device", modules=_MODULES, parts=(call.func.value,))
    message = f"torch has no {name} for XLA devices"
    remedy = f"make the tensors with device=device, dtype=torch.{_DTYPES[name]}"
    return Finding(RULE.id, "refused", node.lineno, message, remedy)


RULE = Rule(
    id="DDP214",
    title="Make tensors on the XLA device",
    why="""\
`torch.cuda.FloatTensor(x)` makes a tensor on a GPU, and `x.type(torch.cuda.FloatTensor)` moves one there; torch has no
such types for XLA devices (X8). A type that is kept in a variable is refused: only its uses say what it becomes.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("nccl")
    model = DDP(torch.nn.Linear(4, 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.cuda.FloatTensor(8, 4).fill_(1.0)).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    main()
""",
    after="""\
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.distributed.xla_backend
from torch.nn.parallel import DistributedDataParallel as DDP


def main(index):
    dist.init_process_group("xla", init_method="xla://")
    model = DDP(torch.nn.Linear(4, 1).to(torch_xla.device()), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.FloatTensor(8, 4).to(torch_xla.device()).fill_(1.0)).mean().backward()
    optimizer.step()
    torch_xla.sync()


if __name__ == "__main__":
    torch_xla.launch(main)
""",
    check=check,
    target="xla",
)
