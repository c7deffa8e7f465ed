"""Where ranks come unequally often none may wait for what rank 0 has."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, HEAD, LOOP, plain, refusals

HELPER = """\
def clipped(value):
    return 5.0 if value > 5.0 else value
def scored(value):
    return clipped(value)
"""
DRAWN = LOOP.format(loss=CE + " + model(F.dropout(x)).mean()", step="optimizer.step()")
DIVIDED = """\
count = 0
with torch.no_grad():
    for x, y in test_loader:
        count += (model(x).argmax(1) == y).sum().item() * {}
print(count)
"""


@pytest.mark.parametrize(("factor", "fine"), [("2.0", True), ("clipped(2.0)", False), ("scored(2.0)", False)])
def test_a_function_that_a_divided_evaluation_calls_asks_no_other_rank(factor: str, fine: bool) -> None:
    decides = "    print(clipped(torch.rand(1).item()))\n"
    result = plain(HEAD + HELPER + DRAWN + decides + DIVIDED.format(factor))
    assert bool(refusals(result)) is not fine
    assert not fine or ("if from_rank_0(value > 5.0)" in result.code and "sampler=range" in result.code)
