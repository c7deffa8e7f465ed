"""What is distributed already: Horovod's words stay, and torch's are not taken for them."""

from __future__ import annotations

from textwrap import dedent

from ddpify_codemods import convert

from tests.codemods.plain.test_distributed_optimizer import BEGIN, LOSS, OPTIMIZER, PATH, converted, refusals


def test_what_is_right_already_stays() -> None:
    text = converted(f"for x, y in loader:\n{LOSS}    loss.backward()\n    optimizer.step()\n").code
    again = convert({PATH: text}, "horovod", style="plain")[PATH]
    assert (again.code, again.reason, again.findings) == (text, "distributed with Horovod already", ())
    exact = convert({PATH: text}, "horovod", style="exact")[PATH]
    assert exact.code == text and "distributed it with Horovod already" in exact.findings[0].message


def test_code_of_torch_is_not_taken_for_horovods() -> None:
    text = dedent(f'import torch.distributed as dist\ndist.init_process_group("gloo")\n{BEGIN}{OPTIMIZER}')
    text += f"for x, y in loader:\n{LOSS}    loss.backward()\n    optimizer.step()\n"
    found = convert({PATH: text}, "horovod", style="plain")[PATH]
    assert refusals(found) == ["DDP652:8"] and "0 models are wrapped" in found.findings[0].message
