"""Models that have a second name, by which training may call them."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, plain, refusals

CALLED = LOOP.format(loss="F.cross_entropy(fast(x), y)", step="optimizer.step()")


@pytest.mark.parametrize(
    "named",
    [
        "fast = torch.compile(model)\n",
        'fast = torch.compile(model, mode="reduce-overhead")\n',
        "fast = torch.compile(model) if torch.rand(1) > 2 else model\n",
        "fast = model\n",
    ],
)
def test_training_calls_the_other_name(named: str) -> None:
    code = plain(HEAD + named + CALLED).code
    assert code.index("fast = ") < code.index("ddp_fast = DistributedDataParallel(fast)") < code.index("for epoch")
    assert "F.cross_entropy(ddp_fast(x), y)" in code and "SGD(model.parameters()" in code
    before = HEAD.replace("optimizer = ", named + "optimizer = ") + CALLED
    assert "ddp_fast = DistributedDataParallel(fast)\noptimizer" in plain(before).code


@pytest.mark.parametrize(
    "named",
    [
        "fast = nn.Sequential(model, nn.ReLU())\n",
        "fast = nn.Sequential(nn.Dropout(0.1), model).to(torch.device('cpu'))\n",
    ],
)
def test_training_calls_what_the_model_is_a_part_of(named: str) -> None:
    code = plain(HEAD + named + CALLED).code
    assert code.index("fast = ") < code.index("ddp_fast = DistributedDataParallel(fast)") < code.index("for epoch")
    assert "F.cross_entropy(ddp_fast(x), y)" in code and "SGD(model.parameters()" in code
    for asks in ("total > 1", "total.bit_length() > 1", "torch.cuda.device_count() > 1"):
        several = f"{named}if {asks}:\n    fast = nn.DataParallel(fast)\n"
        assert "ddp_fast = DistributedDataParallel(fast)" in plain(HEAD + several + CALLED).code


@pytest.mark.parametrize(
    "named",
    [
        "fast = torch.compile(nn.Linear(4, 3))\n",
        "fast = torch.compile(model)\nif total > 1:\n    fast = model\n",
        "if total < 1:\n    fast = torch.compile(model)\n",
        "fast = nn.Sequential(model, nn.ReLU())\nif total > 1:\n    fast = model\n",
        "fast, other = torch.compile(model), 1\n",
    ],
)
def test_another_model_or_one_that_may_have_the_name(named: str) -> None:
    assert refusals(plain(HEAD + named + CALLED))
