"""Losses that couple the samples of a batch are computed of the batch of all ranks, with gradients."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods import convert

from .test_followed import CE, EVALUATION, HEAD, plain, refusals, training, undivided

EACH = 'F.cross_entropy(ddp_model(x), y, reduction="none")'
BATCH = "differentiable_batch(ddp_model(x))"


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (
            "torch.sqrt(F.mse_loss(model(x)[:, 0], y.float()))",
            "torch.sqrt(differentiable_mean(F.mse_loss(ddp_model(x)[:, 0], y.float())))",
        ),
        (f"torch.exp({CE})", "torch.exp(differentiable_mean(F.cross_entropy(ddp_model(x), y)))"),
        (f"{CE} ** 2", "differentiable_mean(F.cross_entropy(ddp_model(x), y)) ** 2"),
        ("(model(x).mean(0) ** 2).sum()", "(differentiable_mean(ddp_model(x).mean(0)) ** 2).sum()"),
        (
            f"{CE} * model(x).mean()",
            "differentiable_mean(F.cross_entropy(ddp_model(x), y)) * differentiable_mean(ddp_model(x).mean())",
        ),
        (
            "1 - 2 * (model(x)[:, 0] * y).sum() / (model(x).sum() + y.sum())",
            "1 - differentiable_sum(2 * (ddp_model(x)[:, 0] * y).sum()) "
            "/ (differentiable_sum(ddp_model(x).sum() + y.sum()))",
        ),
        (
            "F.mse_loss(model(x), model(x) - model(x).mean(0))",
            "ddp_model(x) - differentiable_mean(ddp_model(x).mean(0)))",
        ),
        (f"{CE} + model(x).std(0).mean()", f"F.cross_entropy(ddp_model(x), y) + {BATCH}.std(0).mean()"),
        ("model(x).norm()", f"{BATCH}.norm()"),
        ("torch.cdist(model(x), model(x)).mean()", f"torch.cdist({BATCH}, {BATCH}).mean()"),
        ("torch.matmul(model(x), model(x).T).mean()", f"torch.matmul({BATCH}, {BATCH}.T).mean()"),
        ("(model(x) @ model(x).t()).exp().mean()", f"({BATCH} @ {BATCH}.t()).exp().mean()"),
        (
            "F.cross_entropy(model(x) @ model(x).t(), torch.arange(len(x)))",
            f"F.cross_entropy({BATCH} @ {BATCH}.t(), torch.arange(len(x) * dist.get_world_size()))",
        ),
        (
            "((y[:, None] > y[None]).float().mean(1) * model(x)[:, 0]).mean()",
            "((gathered_y[:, None] > gathered_y[None]).float().mean(1) "
            "* differentiable_batch(ddp_model(x)[:, 0])).mean()",
        ),
        (
            f"torch.stack([model(x).mean(0)] * 3)[y].mean() + {CE}",
            "differentiable_mean(torch.stack([ddp_model(x).mean(0)] * 3))[y].mean() + F.cross_entropy(ddp_model(x), y)",
        ),
        (
            "(model(x).unsqueeze(1) - model(x).unsqueeze(0)).pow(2).mean()",
            f"({BATCH}.unsqueeze(1) - {BATCH}.unsqueeze(0)).pow(2).mean()",
        ),
        (
            "F.cross_entropy(F.softmax(model(x), dim=0), y)",
            f"F.cross_entropy(F.softmax({BATCH}, dim=0), differentiable_batch(y))",
        ),
        (
            'F.cross_entropy(model(x), y, reduction="none").topk(3)[0].mean()',
            f"differentiable_batch({EACH}).topk(3)[0].mean()",
        ),
        (
            'F.cross_entropy(model(x), y, reduction="none")[y > 0].mean()',
            f"differentiable_batch({EACH})[differentiable_batch(y > 0)].mean()",
        ),
        (
            "F.cross_entropy(model(x), y.clone(), ignore_index=0)",
            f"F.cross_entropy({BATCH}, differentiable_batch(y.clone()), ignore_index=0)",
        ),
        (f"{CE} / len(x)", "differentiable_mean(F.cross_entropy(ddp_model(x), y)) / (len(x) * dist.get_world_size())"),
    ],
)
def test_what_a_loss_is_made_of_is_brought_together(loss: str, expected: str) -> None:
    """Means and sums where there are some, else what holds each sample."""
    result = plain(training(loss, step="optimizer.step()\n        print(loss.item())"))
    assert not refusals(result)
    assert f"loss = {expected}\n" in result.code or f"{expected}\n" in result.code
    has_mean = loss.startswith((f"{CE} +", "F.mse_loss")) or loss.endswith(f"+ {CE}")
    assert ("print(loss.item())" in result.code) is not has_mean  # else it is the same on all ranks


CONTRASTIVE = """\
def contrastive(a, b):
    n = a.size(0)
    similar = torch.cat([a, b]) @ torch.cat([a, b]).t()
    similar.fill_diagonal_(-9e9)
    return F.cross_entropy(similar, torch.cat([torch.arange(n) + n, torch.arange(n)]))


class Hardest(nn.Module):
    def forward(self, out, y):
        apart = torch.cdist(out, out)
        return torch.stack([apart[i][y == y[i]].max() for i in range(len(y))]).mean()


hardest = Hardest()
"""


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("contrastive(model(x), model(x + 1))", f"contrastive({BATCH}, differentiable_batch(ddp_model(x + 1)))"),
        (
            f"hardest(model(x), y) + {CE}",
            f"hardest({BATCH}, differentiable_batch(y)) + F.cross_entropy(ddp_model(x), y)",
        ),
        ("metrics.Triplet(0.3)(model(x), y)", f"metrics.Triplet(0.3)({BATCH}, differentiable_batch(y))"),
        (
            "metrics.triplet(model(x), y, metrics.mine(model(x), y))",
            f"metrics.triplet({BATCH}, gathered_y, metrics.mine({BATCH}, gathered_y))",
        ),
    ],
)
def test_a_function_that_couples_samples_is_given_those_of_all_ranks(loss: str, expected: str) -> None:
    """The outermost, which finds all sizes as in one process; also one that is not seen."""
    source = training(loss).replace("for epoch", CONTRASTIVE + "for epoch", 1)
    result = plain("import metrics\n" + source)
    assert not refusals(result) and f"loss = {expected}\n" in result.code


@pytest.mark.parametrize(
    "loss",
    [
        "F.cross_entropy(model(x.flip(0)), y)",  # each rank would compute with all samples
        "F.cross_entropy(model(0.5 * x + 0.5 * x[x.sum(1).argsort()]), y)",
        "torch.sqrt(model(x).pow(2).mean(dim=tuple(range(len(y) % 2, 2)))).mean()",  # of each sample, or of all?
        "model(x).view(-1, 3, 2).std(0).mean()",  # several rows of one sample
        "torch.autograd.grad(model(x).std(), model.weight, create_graph=True)[0].norm()",
        "F.mse_loss(model(x).std(0).expand(8, 3), model(x)[torch.randperm(8)[:8]])",
        "F.cross_entropy(model(x), y, weight=torch.rand(3)) ** 2",  # drawn by each rank
    ],
)
def test_what_is_no_batch_of_all_ranks_is_refused(loss: str) -> None:
    assert refusals(plain(training(loss)))


PUT = "far = torch.cdist(model(x), model(x))\n        {}\n        loss = far.mean()"


def test_rows_of_all_ranks_and_of_this_one_are_not_put_together() -> None:
    """What is changed in place, by a mask of this rank's samples, has a row for each sample of all ranks."""
    assert refusals(
        plain(training().replace(f"loss = {CE}", PUT.format("far.masked_fill_(y[:, None] == y[None], 0.0)")))
    )


def test_places_in_rows_of_all_ranks_are_those_of_all_samples() -> None:
    result = plain(training().replace(f"loss = {CE}", PUT.format("far[y[:, None] == y[None]] = 0.0")))
    assert not refusals(result)
    assert "gathered_y = differentiable_batch(y)" in result.code
    assert "far[gathered_y[:, None] == gathered_y[None]] = 0.0" in result.code


EACH_WITH_Y = "F.cross_entropy(model(x), y, reduction='none')"


@pytest.mark.parametrize(
    "pairs",
    [
        "y[:, None] == y",
        "y.unsqueeze(1).eq(y)",
        "torch.eq(y, y.unsqueeze(1))",
        "torch.where(y[:, None] > y, 1, 0)",
    ],
)
def test_each_two_samples_meet(pairs: str) -> None:
    """They were taken for as many numbers of each sample as a rank has samples."""
    loop = f"pairs = ({pairs})\n        loss = (pairs.float().mean(1) * {EACH_WITH_Y}).mean()"
    result = plain(training().replace(f"loss = {CE}", loop))
    assert not refusals(result) and result.code.count("differentiable_batch(y)") == 1
    assert ast.unparse(ast.parse(pairs.replace("y", "gathered_y"))) in result.code


def test_a_tensor_with_a_name_and_a_dimension_more() -> None:
    loop = "column = y.unsqueeze(1)\n        pairs = column == y\n        "
    loop += f"loss = (pairs.float().mean(1) * {EACH_WITH_Y}).mean()"
    result = plain(training().replace(f"loss = {CE}", loop))
    assert "pairs = differentiable_batch(column) == differentiable_batch(y)" in result.code


def test_rows_that_may_be_others_are_not_put_together() -> None:
    loop = (
        "out = model(x)\n        if epoch:\n            out = out - out.std(0)\n        loss = (out - x[:, :3]).mean()"
    )
    result = plain(training().replace(f"loss = {CE}", loop))
    assert undivided(result)


DICE = """\
def dice(out, y):
    out, y = out.softmax(1)[:, 1], (y == 1).float()
    return 1 - (2 * (out * y).sum() + 1) / (out.sum() + y.sum() + 1)


"""
WHOLE = EVALUATION.format(adds="total += dice(model(x), y).item()", shown="total")


def test_an_evaluation_by_the_same_loss_stays_on_its_rank() -> None:
    """A rank of an evaluation has other batches, or all: nothing is sent while nothing is differentiated."""
    source = training("dice(model(x), y)").replace("for epoch", DICE + "for epoch", 1)
    quiet = source + "with torch.no_grad():\n" + "".join(f"    {line}\n" for line in WHOLE.splitlines())
    result = plain(quiet)
    assert not refusals(result) and "if not torch.is_grad_enabled():" in result.code
    assert (
        "(differentiable_sum(2 * (out * y).sum()) + 1) / (differentiable_sum(out.sum() + y.sum()) + 1)" in result.code
    )
    assert "is_grad_enabled" not in plain(source).code
    assert refusals(plain(source + WHOLE))  # with gradients, which nothing tells from training


def test_phases_are_told_by_their_gradients() -> None:
    source = training("dice(model(x), y)").replace("for epoch", DICE + "for epoch", 1)
    loop = source[source.index("for epoch") :]
    phases = """\
loaders = {"train": train_loader, "val": test_loader}
for epoch in range(3):
    for phase in ["train", "val"]:
        total = 0.0
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = dice(model(x), y)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            total += loss.item()
        print(total)
"""
    result = plain(source.replace(loop, phases))
    assert not refusals(result) and "if not torch.is_grad_enabled():" in result.code


def test_helpers_stand_in_the_file_of_the_loss() -> None:
    head, loop = training("dice(model(x), y)").split("for epoch", 1)
    files = {
        Path("train.py"): f"from losses import dice\n{head}for epoch{loop}",
        Path("losses.py"): f'"""Losses."""\nimport torch\n\n\n{DICE.rstrip()}\n',
    }
    results = convert(files, "cpu", style="plain")
    assert not any(map(refusals, results.values()))
    code = results[Path("losses.py")].code
    assert "import torch.distributed as dist\n\n\nclass DifferentiableSum(torch.autograd.Function):" in code
    assert "differentiable" not in results[Path("train.py")].code


def test_other_engines_have_nothing_for_it() -> None:
    source = training("torch.sqrt(F.mse_loss(model(x)[:, 0], y.float()))")
    result = convert({Path("train.py"): source}, "horovod", style="plain")[Path("train.py")]
    assert any("Horovod has nothing" in each for each in refusals(result))


WRITER = "from torch.utils.tensorboard import SummaryWriter\nwriter = SummaryWriter()\n"


SEVERAL = """\
import sys
import segmentation
class Dice(nn.Module):
    def forward(self, out, y):
        out = torch.sigmoid(out)
        return 1 - ((2 * (out * y).sum(1) + 1) / (out.sum(1) + y.sum(1) + 1)).sum() / y.size(0)
class Hinge(nn.Module):
    def forward(self, out, y):
        return segmentation.hinge(out.squeeze(1), y)
class Net(nn.Module):
    def __init__(self, deep):
        super().__init__()
        self.a, self.b, self.deep = nn.Linear(4, 3), nn.Linear(4, 3), deep
    def forward(self, x):
        return [self.a(x), self.b(x)] if self.deep else self.a(x)
model = Net(len(sys.argv) > 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = {"dice": Dice, "hinge": Hinge}[sys.argv[1]]()
for epoch in range(3):
    for x, y in train_loader:
        y = F.one_hot(y, 3).float()
        if len(sys.argv) > 2:
            outputs, loss = model(x), 0
            for out in outputs:
                loss += criterion(out, y)
        else:
            loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_a_criterion_of_a_library_or_of_the_program_is_brought_together_within() -> None:
    """For several outputs it would be so in its call, too, and be given the batch of all ranks once more."""
    result = plain(HEAD[: HEAD.index("model = ")] + SEVERAL)
    assert not refusals(result)
    assert "segmentation.hinge(differentiable_batch(out.squeeze(1)), differentiable_batch(y))" in result.code
    assert result.code.count("differentiable_batch(") == 3
    assert "loss += criterion(out, y)" in result.code and "criterion(ddp_model(x), y)" in result.code


@pytest.mark.parametrize(("last", "said"), [("x[0].numpy()", True), ("s", False)])
def test_a_model_that_every_rank_gives_the_whole_batch_is_named(last: str, said: bool) -> None:
    """It went without a word: right, and no faster than one process."""
    made = f"rows.append(np.abs(np.fft.fft(s) - np.fft.fft({last})))"
    spectra = f"def spectra(x):\n    rows = []\n    for s in x.numpy():\n        {made}\n"
    spectra += "    return torch.tensor(np.stack(rows), dtype=torch.float32)\n"
    loop = "    for x, y in train_loader:\n"
    source = f"import numpy as np\n{spectra}" + training().replace(loop, f"{loop}        x = spectra(x)\n")
    result = plain(source)
    found = [each for each in result.findings if "every rank computes `model`" in each.message]
    assert not refusals(result) and bool(found) is said
    assert all("what `spectra` makes of it" in each.message and "no faster" in each.remedy for each in found)
