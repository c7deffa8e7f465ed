"""DDP310: kernels that are written for NVIDIA GPUs run nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.header import option_around
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_MODULES = ("triton", "cupy", "pycuda", "numba.cuda", "flash_attn", "xformers", "bitsandbytes", "mamba_ssm", "apex")
_EXTENSION = "torch.utils.cpp_extension."
_BUILDS_CUDA = ("CUDAExtension",)
_BUILDS_SOURCES = ("load", "load_inline")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse what imports or builds kernels for a GPU, for another target; not where it does without them."""
    if target.has_cuda_words:
        return
    for node in script.nodes:
        what = _needs_gpu(script, node)
        if what and not _is_optional(script, node):
            message, line = f"{what} needs an NVIDIA GPU", getattr(node, "lineno", 1)
            option = option_around(script, node)
            if option is not None:
                yield Finding(RULE.id, "note", line, message, f"leave `{ast.unparse(option)}` off on this target")
                continue
            remedy = "use torch's own operations, import it in a try that catches ImportError, or take --target cuda"
            yield Finding(RULE.id, "refused", line, message, remedy)


def _needs_gpu(script: Script, node: ast.AST) -> str:
    if isinstance(node, ast.Import):
        return next((alias.name for alias in node.names if _is_gpu_module(alias.name)), "")
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return next((node.module for alias in node.names if _is_gpu_module(f"{node.module}.{alias.name}")), "")
    if not isinstance(node, ast.Call):
        return ""
    name = script.qualified(node.func)
    word = name.removeprefix(_EXTENSION)
    if not name.startswith(_EXTENSION):
        return ""
    return name if word in _BUILDS_CUDA or (word in _BUILDS_SOURCES and _has_cuda_sources(node)) else ""


def _is_gpu_module(name: str) -> bool:
    return any(f"{name}.".startswith(f"{module}.") for module in _MODULES)


def _has_cuda_sources(call: ast.Call) -> bool:
    """Whether an extension that is built here has parts in CUDA: `cuda_sources=…`, or a file name that ends in .cu."""
    if any(keyword.arg == "cuda_sources" for keyword in call.keywords):
        return True
    return any(isinstance(node, ast.Constant) and str(node.value).endswith(".cu") for node in ast.walk(call))


def _is_optional(script: Script, node: ast.AST) -> bool:
    """Whether the script goes on without it: in a `try`, or where a GPU was asked for."""
    above: ast.AST | None = script.parents.get(node)
    while above is not None:
        if isinstance(above, ast.Try) or (isinstance(above, ast.If) and "is_available" in ast.unparse(above.test)):
            return True
        above = script.parents.get(above)
    return False


RULE = Rule(
    id="DDP310",
    title="Kernels for GPUs run on no other device",
    why="""\
Kernels in CUDA or Triton, and libraries that are made of them, run on NVIDIA GPUs alone: converted for another target
the script would fail at its import, or in the first step (X8).""",
    before="""\
import torch
from flash_attn import flash_attn_func

model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    x = model(torch.rand(2, 8, 4, 4, device="cuda"))
    flash_attn_func(x, x, x).mean().backward()
    optimizer.step()
""",
    after="",
    check=check,
    target="xla",
)
