"""With several ranks an exception of a training ends the run (DDP660)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.facts.flow.test_handlers import SCRIPT
from tests.codemods.plain.test_followed import plain

AGAIN = "try:\n    train(model, 12)\nexcept torch.cuda.OutOfMemoryError:\n    print('again')\n    train(model, 6)\n"
RAISES = """\
except torch.cuda.OutOfMemoryError:
    if {} > 1:
        raise  # the other ranks wait for this one in their backward pass
    print('again')
"""


@pytest.mark.parametrize(
    ("target", "world"),
    [("cuda", "dist.get_world_size()"), ("horovod", "hvd.size()"), ("ignite", "idist.get_world_size()")],
)
def test_it_is_raised_again_before_anything_else(target: str, world: str) -> None:
    result = plain(SCRIPT + AGAIN, target)
    assert RAISES.format(world) in result.code
    [said] = [each for each in result.findings if each.rule == "DDP660"]
    assert said.severity == "warning" and said.line == (SCRIPT + AGAIN).splitlines().index(AGAIN.splitlines()[2]) + 1


def test_a_handler_of_one_line() -> None:
    lines = "for size in (12, 6):\n    try: train(model, size)\n    except RuntimeError: pass\n"
    assert "wait for this one in their backward pass\n        pass\n" in plain(SCRIPT + lines).code


def test_back_to_one_device() -> None:
    path = Path("train.py")
    code = plain(SCRIPT + AGAIN, "cuda").code
    assert convert({path: code}, "none")[path].code.endswith(AGAIN)
    kept = convert(
        {path: code.replace("        raise  # the", "        print('several')\n        raise  # the")}, "none"
    )[path]
    assert "    if 1 > 1:\n        print('several')\n        raise" in kept.code
