"""Ranks agree on the longest sample where a model asks for it, and all of them train."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

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
        MEAN.replace("model(x, lengths)", "torch.utils.checkpoint.checkpoint(model, x, lengths)"),
        MEAN.replace("model = Net", "from torch.utils.checkpoint import checkpoint\nmodel = Net"),
        PROGRAM.format("return self.out(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0].mean(1))"),
    ],
)
def test_where_ranks_cannot_agree(source: str) -> None:
    problems = refusals(plain(source))
    assert any("as long as the longest of a rank's samples" in problem for problem in problems)


def test_a_length_that_does_not_matter_is_asked_of_nobody() -> None:
    code = plain(PROGRAM.format(PADS + "return self.out(outputs[torch.arange(len(x)), lengths - 1])")).code
    assert "max_over_ranks" not in code and "DistributedDataParallel" in code


CUT = "x = x[:, : {}]\n        return self.out(self.rnn(x)[0].mean(1))"
NAMED = "longest = {}\n        return self.out(self.rnn(x[:, :longest])[0].mean(1))"
STEPS = """\
state = x[:, 0]
        for step in range({}):
            state = state + x[:, step]
        return self.out(torch.cat([state, state], 1))"""
MASK = """\
mask = torch.arange({})[None, :] < lengths[:, None]
        return self.out((x.mean(2)[:, : int(lengths.max())] * mask).mean(1, keepdim=True).expand(-1, 16))"""


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (CUT, "lengths.max()"),
        (CUT, "torch.max(lengths)"),
        (CUT, "max(lengths.tolist())"),
        (NAMED, "int(lengths.max())"),
        (NAMED, "lengths.max().item()"),
        (STEPS, "max(lengths)"),
        (STEPS, "lengths.max()"),
        (MASK, "lengths.max()"),
        (PADS.replace("=True", "=True, total_length={}") + "return self.out(outputs.mean(1))", "int(lengths.max())"),
        ("z = torch.zeros(len(x), {}, 16)\n        return self.out((z + hidden[-1][:, None]).mean(1))", "max(lengths)"),
    ],
)
def test_the_longest_sample_that_lengths_tell(body: str, asked: str) -> None:
    result = plain(PROGRAM.format(body.format(asked)) + QUIET)
    assert not refusals(result)
    assert f"max_over_ranks({asked})" in result.code
    assert "is_grad_enabled" in result.code


@pytest.mark.parametrize(
    "source",
    [
        PROGRAM.format(CUT.format("9 - lengths.max()")),
        PROGRAM.format(CUT.format("lengths.min()")),
        PROGRAM.format(CUT.format("2 * lengths.max()")),
        PROGRAM.format("return self.out(self.rnn(x / x.max())[0].mean(1))"),
        PROGRAM.format(CUT.format("lengths.max()")) + QUIET.replace("with torch.no_grad():", "if True:"),
        PROGRAM.format(NAMED.format("int(lengths.max())").replace("return", "longest = longest - 1\n        return")),
    ],
)
def test_other_lengths_are_refused(source: str) -> None:
    assert refusals(plain(source))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (MEAN, "horovod"),
        (MEAN.replace("model = Net()", "def max_over_ranks(x): ...\nmodel = Net()"), "cpu"),
    ],
)
def test_other_engines_and_other_functions_of_that_name(source: str, target: str) -> None:
    path = Path("train.py")
    result = convert({path: source}, target, style="plain")[path]
    assert result.code == source
    assert "DDP647" in {each.rule for each in result.findings if each.severity == "refused"}


def test_ignite_agrees_in_its_own_words() -> None:
    path = Path("train.py")
    code = convert({path: MEAN}, "ignite", style="plain")[path].code
    assert "total_length=max_over_ranks(" in code and 'largest = idist.all_reduce(largest, op="MAX")' in code


def test_in_one_process_the_longest_sample_is_that_of_all() -> None:
    path = Path("train.py")
    for source in (MEAN, PROGRAM.format(CUT.format("lengths.max()"))):
        there = convert({path: source}, "cpu", style="plain")[path].code
        assert "max_over_ranks" in there
        back = convert({path: there}, "none")[path].code
        assert source[source.index("class Net") :] in back and "max_over_ranks" not in back
