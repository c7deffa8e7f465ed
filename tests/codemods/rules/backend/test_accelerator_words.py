"""The words of one accelerator are said in those of another (DDP224)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.backend.accelerator_words import RULE

from tests.codemods.checks import rewritten


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("torch.cuda.set_device(1)", "torch.xpu.set_device(1)"),
        ("x.cuda(1)", "x.xpu(1)"),
        ("print(x.is_cuda)", "print(x.is_xpu)"),
        ("d = 'cuda:1'", "d = 'xpu:1'"),
        ("d = f'cuda:{n}'", "d = f'xpu:{n}'"),
        ("print('cuda is here')", "print('cuda is here')"),
    ],
)
def test_words_of_a_device(line: str, after: str) -> None:
    assert rewritten(RULE, f"import torch\n{line}\n", "xpu") == f"import torch\n{after}\n"
    assert rewritten(RULE, f"import torch\n{line}\n", "cuda") == f"import torch\n{line}\n"


def test_the_extension_goes() -> None:
    source = "import intel_extension_for_pytorch\nimport torch\nx.xpu(1)\n"
    assert rewritten(RULE, source, "cuda") == "import torch\nx.cuda(1)\n"


def test_a_function_of_that_name_is_the_scripts_own() -> None:
    source = "import torch\n\n\ndef cuda(x):\n    return x\n\n\ntools.cuda(x)\n"
    assert rewritten(RULE, source, "xpu") == source
