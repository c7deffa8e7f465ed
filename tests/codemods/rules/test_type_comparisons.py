"""DDP130: what asks for the very type of a tensor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from ddpify_codemods.rules.exact.type_comparisons import RULE
from ddpify_codemods.targets import TARGETS

from ..checks import assert_refused, assert_silent, script_of

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


@pytest.mark.parametrize(
    ("entry", "refused"),
    [
        ("from shown import model\nmodel('vgg')", False),
        ("from shown import show\nshow(1)", True),
        ("import shown\nshown.model('vgg')", True),
        ("from shown import model\nimport shown\ngetattr(shown, name)()", True),
    ],
)
def test_a_function_that_the_program_never_comes_to_stays(entry: str, refused: bool) -> None:
    source = """\
        from torchvision import models
        def show(x):
            return x.numpy() if type(x) is torch.Tensor else x
        def model(name):
            return getattr(models, name)()
        if __name__ == "__main__":
            print(type(model("vgg")) is torch.Tensor)
        """
    shown = replace(script_of("import torch\n" + dedent(source), is_entry=False), path=Path("shown.py"))
    assert RULE.check_program is not None
    found = [*RULE.check_program([script_of(entry), shown], TARGETS["cpu"], [])]
    assert [(script, each.severity, each.line) for script, each in found] == [(shown, "refused", 4)] * refused
