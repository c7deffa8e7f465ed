"""DDP130: what asks for the very type of a tensor."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.exact.type_comparisons import RULE

from ..checks import assert_refused, assert_silent

HEAD = "import torch\nfrom torch import Tensor\n"


@pytest.mark.parametrize(
    "source",
    [
        "if type(x) == torch.Tensor:\n    x = x / 10",
        "y = [v.cuda() if type(v) is Tensor else v for v in batch]",
        "if torch.Tensor is not type(x):\n    save()",
        "if type(x) in (torch.Tensor, list):\n    save()",
        "if x.__class__ is torch.Tensor:\n    save()",
    ],
)
def test_what_is_false_for_a_batch_is_refused(source: str) -> None:
    assert_refused(RULE, HEAD + source, 3)


@pytest.mark.parametrize(
    "source",
    [
        "if isinstance(x, torch.Tensor):\n    save()",
        "if type(x) is list:\n    save()",
        "if type(layer) == torch.nn.Linear:\n    save()",
        "if kind is torch.Tensor:\n    save()",
        "class Data:\n    def __getitem__(self, i):\n        return i if type(self.x) is torch.Tensor else 0",
    ],
)
def test_other_questions_stay(source: str) -> None:
    assert_silent(RULE, HEAD + source)
