"""DDP202: DistributedDataParallel is given what XLA needs, and a model that lies on its device."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...facts.eager import is_moved_before, is_wrapper_call
from ...facts.optimizers import optimizers
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import NATIVE_REDUCTION, Target

_XLA = ("import torch_xla",)
_DROPPED = ("device_ids", "output_device", "dim", "gradient_as_bucket_view")
_POSITIONS = ("module", "device_ids", "output_device", "dim", "broadcast_buffers")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rewrite the wrapper's arguments, and move models that are not moved in time."""
    for call in script.find(ast.Call):
        if is_wrapper_call(script, call):
            yield from _wrapped(script, target, call)
    yield from _tied(script)
    for optimizer in optimizers(script):
        if optimizer.only_tensors or (optimizer.passed_in and not optimizer.bases):
            message = "this optimizer's parameters come from elsewhere"
            remedy = "make sure that their model is on the xla device before: XLA makes new parameters of it"
            yield Finding(RULE.id, "warning", optimizer.call.lineno, message, remedy)
        for base in optimizer.bases:
            if not is_moved_before(script, base.node, optimizer.call.lineno):
                name = base.code
                line = f"{name} = {name}.to({target.device})" if name.isidentifier() else f"{name}.to({target.device})"
                code = f"for {name} in {base.each_of}:\n    {name}.to({target.device})" if base.each_of else line
                message = "move the model before its optimizer is built: XLA makes new parameters of it"
                if base.bound_at is not None:
                    yield Replace(base.node, f"{{}}.to({target.device})", message, modules=_XLA)
                    continue
                yield Insert(script.statement(optimizer.call), code, message, modules=_XLA)


def _tied(script: Script) -> Iterator[Finding]:
    """Weights that two layers share: on XLA `.to()` gives each layer its own (X2)."""
    for statement in script.find(ast.Assign):
        place, value = statement.targets[0], statement.value
        if (
            isinstance(place, ast.Attribute)
            and isinstance(value, ast.Attribute)
            and place.attr == value.attr == "weight"
        ):
            message = f"{ast.unparse(place)} is tied, and moving a model to XLA unties it"
            remedy = "use one layer twice, for example by torch.nn.functional.linear with its weight"
            yield Finding(RULE.id, "refused", statement.lineno, message, remedy)


def _wrapped(script: Script, target: Target, call: ast.Call) -> Iterator[Edit | Finding]:
    given = dict(zip(_POSITIONS, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    module = given.pop("module", None)
    if module is None or len(call.args) > len(_POSITIONS) or not all(keyword.arg for keyword in call.keywords):
        remedy = "write its arguments out: DistributedDataParallel(model)"
        yield Finding(RULE.id, "refused", call.lineno, "the arguments of DistributedDataParallel are not known", remedy)
        return
    moved = is_moved_before(script, module, call.lineno) or _is_moved_for_optimizer(script, module, call)
    kept = {name: value for name, value in given.items() if name not in _DROPPED}
    arguments = ["{}" if moved else f"{{}}.to({target.device})", *(f"{name}={{}}" for name in kept)]
    template = f"{{}}({', '.join([*arguments, target.wrapper_arguments])})"
    parts = (call.func, module, *kept.values())
    modules = () if moved else _XLA
    yield Replace(
        call, template, "wrap the model for XLA, which has one device a process", modules=modules, parts=parts
    )


def _is_moved_for_optimizer(script: Script, module: ast.expr, call: ast.Call) -> bool:
    """Whether an optimizer above has the module's parameters: it was moved for that."""
    return any(
        base.code == ast.unparse(module)
        and optimizer.call.lineno < call.lineno
        and script.scope(optimizer.call) is script.scope(call)
        for optimizer in optimizers(script)
        for base in optimizer.bases
    )


def check_program(scripts: Sequence[Script], target: Target, edits: Sequence[Edit]) -> Iterator[tuple[Script, Finding]]:
    """Say so when a way to reduce gradients is asked for that only the runtime has."""
    if target.wrapper_arguments == NATIVE_REDUCTION:
        message = (
            "--xla-reduce native is for scripts that run in one process; this one keeps its DistributedDataParallel"
        )
        remedy = "or call torch_xla.core.xla_model.reduce_gradients before each step instead of it"
        yield scripts[0], Finding(RULE.id, "warning", 1, message, remedy)


RULE = Rule(
    id="DDP202",
    title="Wrap the model for XLA",
    why="""\
XLA has one device a process, so `device_ids` goes, and its gradients must be views of DDP's buckets
(`gradient_as_bucket_view=True`, as PyTorch/XLA documents). A model must be moved before its optimizer is built: on XLA
`.to()` makes new parameters, and an optimizer that has the old ones trains nothing (X1).""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapped = DistributedDataParallel(model, find_unused_parameters=True)
    wrapped(torch.ones(2, 4)).sum().backward()
    optimizer.step()


if __name__ == "__main__":
    main()
""",
    after="""\
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.distributed.xla_backend
from torch.nn.parallel import DistributedDataParallel


def main(index):
    dist.init_process_group("xla", init_method="xla://")
    model = torch.nn.Linear(4, 1)
    model = model.to(torch_xla.device())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapped = DistributedDataParallel(model, find_unused_parameters=True, gradient_as_bucket_view=True)
    wrapped(torch.ones(2, 4).to(torch_xla.device())).sum().backward()
    optimizer.step()
    torch_xla.sync()


if __name__ == "__main__":
    torch_xla.launch(main)
""",
    check=check,
    check_program=check_program,
    target="xla",
)
