"""Ranks agree on the longest sample where a model asks for it, and all of them train."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

from .test_packed import PADS, PROGRAM

MEAN = PROGRAM.format(PADS + "return self.out(outputs.mean(1))")
QUIET = """\
hits = 0
with torch.no_grad():
    for x, lengths, y in DataLoader(data, batch_size=12):
        hits += (model(x, lengths).argmax(1) == y).sum().item()
print(hits)
"""


def test_an_evaluation_pads_to_the_longest_of_its_own_batch() -> None:
    result = plain(MEAN + QUIET)
    assert not refusals(result)
    assert "    if not torch.is_grad_enabled():  # an evaluation\n        return value\n    largest" in result.code


@pytest.mark.parametrize(
    "source",
    [
        MEAN + QUIET.replace("with torch.no_grad():", "if True:"),  # ranks would wait for each other
        MEAN + "print(model(torch.ones(1, 2, 8), torch.tensor([2])))\n",
        PROGRAM.format("return self.out(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0].mean(1))"),
    ],
)
def test_where_ranks_cannot_agree(source: str) -> None:
    problems = refusals(plain(source))
    assert any("as long as the longest of a rank's samples" in problem for problem in problems)


def test_a_length_that_does_not_matter_is_asked_of_nobody() -> None:
    code = plain(PROGRAM.format(PADS + "return self.out(outputs[torch.arange(len(x)), lengths - 1])")).code
    assert "max_over_ranks" not in code and "DistributedDataParallel" in code
