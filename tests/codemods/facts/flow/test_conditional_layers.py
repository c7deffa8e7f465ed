"""Layers that a forward calls in some cases: DistributedDataParallel looks for unused parameters where a model may have
a layer that it does not call, and nowhere else."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, HEAD, LOOP, plain, refusals

BLOCK = """\
class Block(nn.Module):
    def __init__(self, size, stride=1, shortcut=None):
        super().__init__()
        self.layer = nn.Linear(4, size)
        {made}

    def forward(self, x):
        out = self.layer(x)
        {called}
        return out


model = nn.Sequential(Block(4), Block(3, 2, nn.Linear(4, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
GROWS = "if stride > 1:\n"
LAYER = "nn.Linear(4, size)"


def wrapped(made: str, called: str, later: str = "pass") -> str:
    block = BLOCK.format(made=made.replace("\n", "\n        "), called=called.replace("\n", "\n        "))
    result = plain(HEAD.partition("model = ")[0] + block + LOOP.format(loss=CE, step=f"optimizer.step()\n    {later}"))
    assert not refusals(result)
    return next(line for line in result.code.split("\n") if "= DistributedDataParallel(" in line)


@pytest.mark.parametrize(
    ("made", "called"),
    [
        ("self.shortcut = shortcut", "if self.shortcut is not None:\n    out = out + self.shortcut(x)"),
        ("self.shortcut = shortcut", "if self.shortcut is None:\n    return out\nout = out + self.shortcut(x)"),
        ("self.shortcut = shortcut", "out = out + (self.shortcut(x) if self.shortcut else x)"),
        (
            "if stride > 1:\n    self.shortcut = nn.Sequential(nn.Linear(4, size), nn.BatchNorm1d(size))",
            'if hasattr(self, "shortcut"):\n    out = out + self.shortcut(x)',
        ),
        (
            f"self.stride = stride\n{GROWS}    self.branch = {LAYER}\nelse:\n    self.branch = nn.Sequential()",
            "if self.stride <= 1:\n    return out\nout = out + self.branch(x)",
        ),
        (
            "self.equal = stride == 1\nself.shortcut = (not self.equal) and nn.Linear(4, size) or None",
            "out = torch.add(x if self.equal else self.shortcut(x), out)",
        ),
        (
            "self.grows = stride != 1\nif self.grows:\n    self.grow = nn.Linear(4, size)",
            "if self.grows:\n    out = out + self.grow(x)",
        ),
        ("self.drop = nn.Dropout(0.1)\nself.stride = stride", "if self.stride > 1:\n    out = self.drop(out)"),
        (
            f"self.wide = stride > 1\nif self.wide:\n    self.rows = nn.ModuleList([{LAYER} for _ in range(2)])",
            "if self.wide:\n    out = out + self.rows[0](x) + self.rows[1](x)",
        ),
    ],
)
def test_a_layer_that_is_there_where_it_is_called(made: str, called: str) -> None:
    assert "find_unused_parameters" not in wrapped(made, called)


@pytest.mark.parametrize(
    ("made", "called"),
    [
        (
            f"rows = [{LAYER}]\nself.wide = stride > 1\nself.all = nn.ModuleList(rows)\n"
            "if self.wide:\n    self.rows = nn.ModuleList(rows)",
            "if self.wide:\n    out = out + self.rows[0](x)",
        ),
        ("self.stride = stride\nself.extra = nn.Linear(4, size)", "if self.stride > 1:\n    out = out + self.extra(x)"),
        ("self.extra = nn.Linear(4, size)", "if torch.rand(1) < 0.5:\n    out = out + self.extra(x)"),
        (
            "self.stride = stride\nself.shortcut, self.other = shortcut, nn.Linear(4, size)",
            "if self.shortcut is not None:\n    out = out + self.shortcut(x)\nelse:\n    out = out + self.other(x)",
        ),
        (
            f"self.stride = stride\nif size > 3:\n    self.extra = {LAYER}\nelse:\n    self.extra = nn.Linear(4, 3)",
            "if self.stride > 1:\n    out = out + self.extra(x)",
        ),
        (
            f"self.stride = stride\nself.extra = {LAYER}\n{GROWS}    self.extra = {LAYER}",
            "if self.stride > 1:\n    out = out + self.extra(x)",
        ),
        (
            f"self.extra = {LAYER} if stride > 1 else None",
            "if self.extra is not None and x.dim() > 1:\n    out = out + self.extra(x)",
        ),
        (
            f"self.extra = {LAYER} if stride > 1 else None",
            "if self.extra is None or x.dim() > 1:\n    return out\nout = out + self.extra(x)",
        ),
        (
            f"self.wide = stride > 1\nself.extra = {LAYER} if self.wide else nn.Linear(4, 3)",
            "if self.wide:\n    out = out + self.extra(x)",
        ),
        (
            f"self.stride = stride * 2\n{GROWS}    self.extra = {LAYER}",
            "if self.stride > 1:\n    out = out + 0\nelse:\n    out = out + self.extra(x)",
        ),
        (
            f"self.grown = stride\nif stride >= 1:\n    self.extra = {LAYER}",
            "if self.grown > 1:\n    out = out + self.extra(x)",
        ),
        (
            f"self.limit, self.stride = stride // 2, stride\nself.extra = {LAYER} if stride > 2 else None",
            "if self.stride < self.limit:\n    out = out + self.extra(x)",
        ),
    ],
)
def test_a_layer_that_may_be_left_out(made: str, called: str) -> None:
    assert "find_unused_parameters=True" in wrapped(made, called)


@pytest.mark.parametrize(
    "later", ["model[0].extra = None", "model[0].wide = False", "setattr(model[0], 'wide', False)"]
)
def test_a_condition_that_changes_later(later: str) -> None:
    made = f"self.wide = stride > 1\nself.extra = {LAYER} if self.wide else None"
    called = "if self.wide:\n    out = out + self.extra(x)"
    assert "find_unused_parameters=True" in wrapped(made, called, later)
