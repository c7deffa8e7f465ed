"""DDP211: functions of torch_xla under their current names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import inside_f_string, source
from ...facts.older_xla import OldName, autocasts, is_in_sight, old_names
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_ARGUMENTS = ("enabled", "dtype", "cache_enabled")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rename what is deprecated or gone."""
    texts: dict[ast.expr, list[OldName]] = {}
    for old in old_names(script):
        name = old.meaning.rpartition(".")[2]
        message = f"{name} {old.state}: use {old.code}"
        call = script.parents[old.node]
        called = isinstance(call, ast.Call) and call.func is old.node
        if old.by_hand:
            yield Finding(RULE.id, "warning", old.node.lineno, message, old.by_hand)
        elif inside_f_string(script, old.node):
            text = [parent for parent in script.ancestors(old.node) if isinstance(parent, ast.JoinedStr)][-1]
            texts.setdefault(text, []).append(old)
        elif name in ("GradScaler", "get_ordinal") and called:
            assert isinstance(call, ast.Call)
            arguments = "enabled=False" if name == "GradScaler" else ""  # bfloat16 needs no scaling
            yield Replace(call, f"{old.code}({arguments})", message, modules=old.modules)
        else:
            yield Replace(old.node, old.code, message, modules=old.modules)
    yield from _in_f_strings(script, texts)
    for call in autocasts(script):
        yield _autocast(call)
    for constant in script.find(ast.Constant):
        if constant.value == "pjrt://":
            yield Replace(constant, '"xla://"', "pjrt:// is deprecated: use xla://")


def _in_f_strings(script: Script, texts: dict[ast.expr, list[OldName]]) -> Iterator[Replace]:
    """Old names in f-strings, whose own places Python 3.11 does not know: the text is replaced as a whole."""
    for text, inside in texts.items():
        new = source(script, text)
        for old in inside:
            new = new.replace(ast.unparse(old.node), old.code)
        message = f"{inside[0].meaning.rpartition('.')[2]} {inside[0].state}: use {inside[0].code}"
        yield Replace(text, new, message, modules=tuple(line for old in inside for line in old.modules))


def _autocast(call: ast.Call) -> Replace | Finding:
    message = "torch_xla.amp.autocast has a newer name: use torch.autocast"
    if not is_in_sight(call):
        return Finding(RULE.id, "warning", call.lineno, message, 'write torch.autocast("xla", …)')
    given = [*zip(_ARGUMENTS, call.args[1:], strict=False)]
    given += [(key.arg, key.value) for key in call.keywords if key.arg and key.arg != "device"]
    template = f'torch.autocast("xla"{"".join(f", {name}={{}}" for name, _ in given)})'
    message = "torch_xla.amp.autocast has a newer name: use torch.autocast"
    return Replace(call, template, message, modules=("import torch",), parts=tuple(value for _, value in given))


RULE = Rule(
    id="DDP211",
    title="Call torch_xla's functions by their current names",
    why="""\
Scripts that use torch_xla already are "XLA code already" and stay as they are. Old spellings are told, and rewritten
with `--modernize`: some are deprecated in 2.9 (`xm.xla_device`, `xm.mark_step`), some are gone (`xm.get_ordinal`,
`xm.xrt_world_size`, `torch_xla.experimental.pjrt`, `torch_xla.amp.GradScaler`).""",
    before="""\
import torch
import torch_xla.core.xla_model as xm

device = xm.xla_device()
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * xm.xrt_world_size())
for step in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4).to(device)).mean().backward()
    xm.optimizer_step(optimizer)
    xm.mark_step()
print(xm.get_ordinal())
""",
    after="""\
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr

device = torch_xla.device()
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * xr.world_size())
for step in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4).to(device)).mean().backward()
    xm.optimizer_step(optimizer)
    torch_xla.sync()
print(xr.global_ordinal())
""",
    check=check,
    target="xla",
)
