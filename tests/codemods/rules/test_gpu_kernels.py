"""DDP310: kernels for GPUs."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.devices.gpu_kernels import RULE

from ..checks import assert_refused, assert_silent, findings_of

HEAD = "import torch\nfrom torch.utils import cpp_extension\nfrom torch.utils.cpp_extension import load, load_inline\n"


@pytest.mark.parametrize(
    "source",
    [
        "load('ops', ['ops.cpp'])",
        "load_inline('ops', cpp_sources=text)",
        "import tritonclient, numba",
        "from . import triton",
        "try:\n    import triton\nexcept ImportError:\n    triton = None",
        "if torch.cuda.is_available():\n    import cupy",
    ],
)
def test_code_for_the_host_and_what_is_optional(source: str) -> None:
    assert_silent(RULE, HEAD + source)


@pytest.mark.parametrize(
    "source",
    [
        "import triton.language as tl",
        "from numba import cuda",
        "from flash_attn.modules import mha",
        "import cupy as cp",
        "from apex import amp",
        "load(name='ops', sources=['ops.cpp', 'ops_kernel.cu'])",
        "cpp_extension.load(name='ops', sources=['ops.cu'])",
        "load_inline('ops', cpp_sources=text, cuda_sources=kernels)",
        "cpp_extension.CUDAExtension('ops', files)",
    ],
)
def test_kernels(source: str) -> None:
    assert_refused(RULE, HEAD + source, line=4)


def test_they_stay_for_gpus() -> None:
    assert_silent(RULE, "import triton", target="cuda")


def test_an_option_that_may_be_left_off() -> None:
    source = "import argparse\nargs = argparse.ArgumentParser().parse_args()\nif args.fp16:\n    from apex import amp\n"
    [finding] = findings_of(RULE, source)
    assert (finding.severity, finding.line, finding.remedy) == ("note", 4, "leave `args.fp16` off on this target")


def test_a_main_guard_is_no_option() -> None:
    assert_refused(RULE, "if __name__ == '__main__':\n    from apex import amp\n", line=2)
