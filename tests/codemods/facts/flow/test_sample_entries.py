"""Lists that loops over samples fill with what a library makes of each, and those that hold others as well."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.facts.flow.sample_entries import fills, given, left_by_turns, row_of_each
from ddpify_codemods.facts.flow.values import Items, Value, of

from tests.codemods.checks import script_of, sources_of
from tests.codemods.plain.test_followed import plain, refusals, training

LOOP = "    for x, y in train_loader:\n"
FILLED = """\
import numpy as np
import scipy.signal
def numbers():
    while True:
        yield 1.0
def counted(z, before=[]):
    before.append(1)
    return z * len(before)
def spectra(batch):
    rows, others = [], []
    last, weights = 0, numbers()
    for s in batch.cpu().numpy():
        {turn}
    return {made}
"""
TURN = "z = np.fft.fft(s); rows.append(np.abs(z))"
STACKED = "torch.tensor(np.stack(rows), dtype=torch.float32)"


def converted(turn: str = TURN, made: str = STACKED) -> str:
    """What a script becomes whose model gets what such a function makes of its batches; "" where it is refused."""
    source = FILLED.format(turn=turn.replace("\n", "\n        "), made=made) + training()
    result = plain(source.replace(LOOP, LOOP + "        x = spectra(x)\n"))
    return "" if refusals(result) else result.code


@pytest.mark.parametrize(
    ("turn", "made"),
    [
        (TURN, STACKED),
        (TURN, "torch.from_numpy(np.array(rows)).float()"),
        (TURN, "torch.FloatTensor(rows)"),
        (TURN, "torch.tensor(np.asarray(rows)).float()"),
        ("_, _, z = scipy.signal.stft(s)\nrows.append(z[0])\nothers.append(s)", STACKED),
        ("z = np.fft.fft(s)\nif len(z) < 4:\n    z = np.pad(z, (0, 4 - len(z)))\nrows.append(np.abs(z))", STACKED),
    ],
)
def test_each_rank_makes_the_rows_of_its_samples(turn: str, made: str) -> None:
    code = converted(turn, made)
    assert "x = spectra(x)" in code


@pytest.mark.parametrize(
    "turn",
    [
        "rows.append(np.abs(np.fft.fft(s) - np.fft.fft(batch[0].numpy())))",
        "last = np.fft.fft(s + np.real(last))\nrows.append(np.abs(last))",
        "z = np.fft.fft(s + np.real(last))\nlast = z\nrows.append(np.abs(z))",
        "others.append(s)\nrows.append(np.abs(np.fft.fft(np.median(others, 0))))",
        "if s.sum() > 0:\n    rows.append(np.abs(np.fft.fft(s)))",
        "if s.sum() > 0:\n    continue\nrows.append(np.abs(np.fft.fft(s)))",
        "np.copyto(STATE, s)\nrows.append(np.abs(np.fft.fft(s + STATE)))",
        "rows.append(np.abs(np.fft.fft(s)) * next(weights))",
        "rows.append(counted(np.abs(np.fft.fft(s))))",
        "z = last\nz += np.abs(np.fft.fft(s))\nrows.append(z)",
    ],
)
def test_what_sees_other_samples_is_computed_of_the_batch_of_all(turn: str) -> None:
    code = converted(turn)
    assert not code or "spectra(differentiable_batch(x))" in code


def test_what_goes_from_turn_to_turn_is_seen_also_of_torch() -> None:
    """`prev` was taken for something of the sample at hand."""
    turn = "last = torch.tanh(torch.as_tensor(s) + last); rows.append(last)"
    code = converted(turn, "torch.stack(rows)")
    assert not code or "spectra(differentiable_batch(x))" in code


def test_a_list_that_the_loop_is_not_given_anew_is_not_one_of_the_batch() -> None:
    script = script_of("rows = []\nfor s in x:\n    rows.append(f(s))\nfor s in x:\n    old.append(f(s))\n")
    calls = [each for each in script.find(ast.Call) if ast.unparse(each.func).endswith("append")]
    loops = script.find(ast.For)
    assert [fills(script, loop, call) for loop, call in zip(loops, calls, strict=True)] == [True, False]


@pytest.mark.parametrize(
    ("body", "reads", "left"),
    [
        ("z = f(s, self.n)\n    rows.append(z)", ["f", "self.n"], set()),
        ("if a: z = 1\n    else: z = 2\n    rows.append(z)", ["a"], set()),
        ("if a: z = 1\n    rows.append(z)", ["a", "z"], {"z"}),
        ("w = z * s\n    z = w", ["z"], {"z", "w"}),
        ("n += 1", ["n"], {"n"}),
        ("rows.append([f(c) for c in s])", ["f"], set()),
    ],
)
def test_what_a_turn_reads_that_it_has_not_made(body: str, reads: list[str], left: set[str]) -> None:
    loop = ast.parse(f"for s in x:\n    {body}\n").body[0]
    assert isinstance(loop, ast.For)
    assert sources_of(list(given(loop))) == reads and left_by_turns(loop) == left


def test_rows_of_a_list() -> None:
    assert row_of_each(of(Items("list", {}, Value("rows"), by_sample=True))) == Value("rows")
    assert row_of_each(of(Items("list", {}, Value("rows")))) is None
    assert row_of_each(of(Items("list", {}, Value("picked"), by_sample=True))) is None
    assert row_of_each(of(Items("list", {0: Value()}, Value("rows"), by_sample=True))) is None


def test_a_forward_of_another_file_that_fills_a_list() -> None:
    """The loop around it, with names and nodes of its own, was taken for one of this file."""
    net = """\
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 3)])
    def forward(self, x):
        found = []
        for layer in self.layers:
            found.append(layer(x))
        return found[0]
"""
    source = training().replace("nn.Linear(4, 3)", "Net()")
    source = source.replace("in train_loader:", 'in tqdm(train_loader, desc=f"{epoch + 1}"):')
    source = f"from net import Net\nfrom tqdm import tqdm\n{source}"
    result = convert({Path("train.py"): source, Path("net.py"): net}, "cpu", style="plain")[Path("train.py")]
    assert not refusals(result) and "ddp_model(x)" in result.code
