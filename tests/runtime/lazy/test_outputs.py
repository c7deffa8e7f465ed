"""Outputs stay with the ranks that computed them, and train what whole outputs train."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel, rank_zero_only, rank_zero_value
from ddpify_runtime.sharding import collectives
from torch import Tensor, nn

from tests.runtime.processes import run
from tests.turns import on_ranks

Loss = Callable[[Any, Tensor], Any]
CASES: dict[str, tuple[Callable[[], Any], Loss, bool]] = {}


def case(model: Callable[[], Any], gathers: bool = False) -> Callable[[Loss], Loss]:
    """Register a loss of a model and a batch; whether its steps gather something of the outputs."""

    def register(loss: Loss) -> Loss:
        CASES[loss.__name__] = model, loss, gathers
        return loss

    return register


class Language(nn.Module):
    """Token ids in, logits per position out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.head = nn.Linear(6, 11)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.embedding(x)))  # type: ignore[no-any-return]


def tokens(x: Tensor) -> Tensor:
    return (x.abs() * 7).long().clamp(max=10)


@case(Language)
def next_token(model: Any, x: Tensor) -> Any:
    logits = model(tokens(x))
    return F.cross_entropy(logits.view(-1, 11), tokens(x).roll(1, 1).view(-1), ignore_index=0)


@case(Language)
def shifted(model: Any, x: Tensor) -> Any:
    logits = model(tokens(x))[..., :-1, :].contiguous().double()
    return nn.CrossEntropyLoss(label_smoothing=0.1)(logits.reshape(-1, logits.size(-1)), tokens(x)[:, 1:].reshape(-1))


@case(Language)
def classes_second(model: Any, x: Tensor) -> Any:
    return F.nll_loss(F.log_softmax(model(tokens(x)), dim=-1).transpose(1, 2), tokens(x))


@case(Language)
def with_accuracy(model: Any, x: Tensor) -> Any:
    logits = model(tokens(x))
    with torch.no_grad():
        accuracy = (logits.argmax(-1) == tokens(x)).double().mean()
    return F.cross_entropy(logits.flatten(0, 1), tokens(x).flatten()) * (1 + accuracy)


@case(Language, gathers=True)
def copied_then_changed(model: Any, x: Tensor) -> Any:
    logits = model(tokens(x))
    copies = logits.to(torch.float64, copy=True), logits.transpose(1, 2).contiguous()
    views = logits.transpose(1, 2), logits.detach()
    logits.mul_(2.0)
    return sum(value.pow(2).mean() * factor for factor, value in enumerate((*copies, *views, logits), start=1))


@case(Language)
def added_in_place(model: Any, x: Tensor) -> Any:
    logits = model(tokens(x))
    loss = F.cross_entropy(logits.view(-1, 11), tokens(x).view(-1))
    loss += logits.square().mean()
    loss /= 2
    return loss


class Autoencoder(nn.Module):
    """Returns a reconstruction and two codes."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.variance, self.back = nn.Linear(8, 3), nn.Linear(8, 3), nn.Linear(3, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, variance = self.mean(x), self.variance(x)
        return torch.sigmoid(self.back(mean + torch.randn_like(mean) * variance.exp())), mean, variance


@case(Autoencoder)
def reconstruction(model: Any, x: Tensor) -> Any:
    made, mean, variance = model(x)
    divergence = -0.5 * torch.sum(1 + variance - mean.pow(2) - variance.exp())
    return F.binary_cross_entropy(made, x.sigmoid(), reduction="sum") + divergence


@case(Autoencoder)
def per_sample(model: Any, x: Tensor) -> Any:
    made, mean, _ = model(x)
    return ((made - x) ** 2).sum(dim=1).mean() + 0.1 * mean.abs().mean(1).sum()


class Pair(nn.Module):
    """A generator and a discriminator, each divided by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 8))
        self.discriminator = nn.Sequential(nn.Linear(8, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 1))


@case(Pair)
def adversarial(model: Any, x: Tensor) -> Any:
    fake = model.generator(x)
    real = F.binary_cross_entropy_with_logits(model.discriminator(x).view(-1), torch.ones(len(x)))
    faked = F.binary_cross_entropy_with_logits(model.discriminator(fake.detach()).squeeze(1), torch.zeros(len(x)))
    fooled = F.binary_cross_entropy_with_logits(model.discriminator(fake), torch.ones(len(x), 1))
    return real + faked + fooled + 0.1 * F.l1_loss(fake, x)


class Chain(nn.Module):
    """Two models that are divided by themselves: the second takes each position of the first one's samples."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Linear(2, 6)
        self.discriminator = nn.Linear(6, 3)


@case(Chain, gathers=True)
def positions_as_samples(model: Any, x: Tensor) -> Any:
    each = model.discriminator(model.generator(x.view(-1, 4, 2)).view(-1, 6))
    return F.cross_entropy(each, (x.view(-1, 2)[:, 0] * 9).long() % 3) + each[1].sum()


class Halves(torch.autograd.Function):
    """A Function of the user's own sees the tensor itself."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x / 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] / 2


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 8))


@case(linear, gathers=True)
def own_function(model: Any, x: Tensor) -> Any:
    return F.mse_loss(Halves.apply(model(x)), x)  # type: ignore[no-untyped-call]


@case(linear, gathers=True)
def own_function_beside(model: Any, x: Tensor) -> Any:
    output = model(x)
    return F.mse_loss(output, x) + F.l1_loss(Halves.apply(output).view(-1), x.view(-1))  # type: ignore[no-untyped-call]


@case(linear, gathers=True)
def penalised_slope(model: Any, x: Tensor) -> Any:
    made = model(x).detach()
    made.requires_grad_()
    assert made.requires_grad
    (slope,) = torch.autograd.grad(model(made).sum(), made, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


@case(linear, gathers=True)
def penalised_slope_of_what_was_used(model: Any, x: Tensor) -> Any:
    made = model(x).detach()
    loss = F.mse_loss(model(made), x)
    made.requires_grad_()
    (slope,) = torch.autograd.grad(model(made).sum(), made, create_graph=True)
    return loss + slope.square().mean()


@case(Pair, gathers=True)
def penalised_images(model: Any, x: Tensor) -> Any:
    fake = model.generator(x)
    score = model.discriminator(fake).sum() + 0.1 * F.mse_loss(fake, x) + 0.1 * fake[:, :3].square().sum()
    (slope,) = torch.autograd.grad(score, fake, create_graph=True)
    return score + (slope.norm(dim=1) - 1).square().mean()


@case(linear, gathers=True)
def looked_at_between(model: Any, x: Tensor) -> Any:
    output = model(x)
    loss = F.mse_loss(output, x) + output.mean(0).square().sum()
    (slope,) = torch.autograd.grad(loss, [output], create_graph=True)
    return loss + slope.square().sum()


@case(linear, gathers=True)
def changed_in_place(model: Any, x: Tensor) -> Any:
    output = model(x)
    flat = output.view(-1)
    output[x > 0] = 0
    return flat.square().mean() + F.mse_loss(output, x)


@case(linear)
def broadcast_by_mistake(model: Any, x: Tensor) -> Any:
    return (model(x)[:, :1] - x[:, 0]).square().mean()


@case(linear, gathers=True)
def over_the_batch(model: Any, x: Tensor) -> Any:
    output = model(x)
    return (output - output.mean(0)).square().mean() + output.softmax(0).square().sum()


@case(linear, gathers=True)
def retained_gradient(model: Any, x: Tensor) -> Any:
    output = model(x)
    output.retain_grad()
    loss = F.mse_loss(output, x)
    loss.backward(retain_graph=True)
    return loss + output.grad.square().sum()


@case(linear, gathers=True)
def scaled_by_a_parameter(model: Any, x: Tensor) -> Any:
    return F.mse_loss(model(x) * model[2].bias, x) + (model(x) * model[2].bias.sum()).sum()


@case(linear)
def two_losses(model: Any, x: Tensor) -> Any:
    output = model(x)
    F.smooth_l1_loss(output, x).backward(retain_graph=True)
    return output.tanh().mul(2).sub(x).abs().mean()


@case(linear)
def running_sums(model: Any, x: Tensor) -> Any:
    """Numbers of which every rank has a part: added up, scaled, read."""
    output = model(x)
    first, second = F.mse_loss(output, x), output.abs().mean()
    total = 0.0
    for loss in (first, second, first):
        total += loss.detach()  # type: ignore[assignment]
    assert float(total) > 0 and f"{first:.1f}" == f"{first.item():.1f}" and not torch.isnan(first)
    kept = total
    total += second.detach()
    assert kept is total
    return -(-(2 * first + second / 3 - 1e-3 * model[0].weight.square().sum()) * 0.5 + 1)


@case(linear)
def read_and_then_changed(model: Any, x: Tensor) -> Any:
    loss = F.mse_loss(model(x), x)
    before = loss.detach()
    loss *= 2  # which the view sees
    return loss + before * F.l1_loss(model(x), x)


@case(linear)
def the_same_memory(model: Any, x: Tensor) -> Any:
    """What torch changes in one place is changed in all that share it, also after it was read."""
    total = 0.0 + 1e-3 * model(x).square().sum().detach()
    same, view = total.to(total.dtype), total.detach()
    assert view.item() == same.item()
    total += 0.5
    assert total.item() == same.item() == view.item()
    whole = (model(x).detach() * 0 + 0.25).sum()
    return torch.add(input=F.mse_loss(model(x), x), other=F.l1_loss(model(x), x)) * total * whole.to(torch.int64)


@case(linear)
def the_largest_class(model: Any, x: Tensor) -> Any:
    output, target = model(x), x.argmax(1)
    _, best = torch.max(output.data, 1)
    hits = (best == target).sum() + output.topk(2, 1)[1].eq(target.view(-1, 1)).sum()
    also = output.argmax(1, keepdim=True)
    also_hits = also.eq(target.view_as(also)).sum().item()
    return F.cross_entropy(output, target, reduction="sum") * (1 + hits.item() + also_hits) / len(x)


def train(name: str) -> tuple[list[Tensor], int]:
    """Loss, parameters and gradients of each of 7 steps, in float64; how many tensors the fifth step gathered."""
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(3)
    build, loss_of, _ = CASES[name]
    model = build()
    for part in (model.generator, model.discriminator) if isinstance(model, (Pair, Chain)) else (model,):
        DistributedDataParallel(part)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    history: list[Tensor] = []
    gathered: list[int] = []  # the step of each; the fifth has no trials, which see the whole of what they are given

    gather_parts = collectives.gather_parts

    def counted(tensor: Tensor) -> list[Tensor]:
        """What joins rows; batch normalisation gathers its statistics by itself."""
        gathered.append(len(history))
        return gather_parts(tensor)

    vars(collectives)["gather_parts"] = counted
    for size in (12, 12, 5, 12, 7, 2, 12):
        x = torch.randn(size, 8)
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        optimizer.step()
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        state = [value.detach().flatten() for value in (loss, *model.state_dict().values(), *gradients)]
        history.append(torch.cat(state))
    return history, gathered.count(4)


@pytest.mark.parametrize(("name", "world_size"), on_ranks(CASES))
def test_trains_what_one_process_trains(name: str, world_size: int) -> None:
    ((alone, _),) = run(1, train, name)
    ranks = run(world_size, train, name)
    for step, expected in enumerate(alone):
        for history, _ in ranks:
            assert torch.equal(history[step], ranks[0][0][step]), f"ranks differ at step {step}"
        difference = (ranks[0][0][step] - expected).norm() / expected.norm()
        assert difference <= 1e-13, f"step {step}: {difference:.1e}"
    assert bool(ranks[0][1]) == CASES[name][2]


class Keeper:
    """Keeps losses, and writes them down later on one rank."""

    def __init__(self) -> None:
        self.losses: list[Tensor] = []
        self.last: Any = None

    def total(self) -> float:
        return sum(float(loss) for loss in self.losses) + float(self.last.sum())


def kept() -> tuple[Any, Any]:
    torch.manual_seed(0)
    model, keeper = DistributedDataParallel(nn.Linear(8, 8)), Keeper()
    for _ in range(3):
        keeper.last = model(torch.randn(6, 8)).detach()
        keeper.losses.append(keeper.last.square().mean())
    last = keeper.last * 2
    return rank_zero_value(keeper.total)(), rank_zero_value(lambda: float(last.sum()))()


def test_what_a_rank_does_alone_may_see_numbers_in_parts() -> None:
    ((total, last),) = run(1, kept)
    assert run(2, kept) == [(pytest.approx(total), pytest.approx(last))] * 2


def printed() -> list[str]:
    torch.manual_seed(0)
    model, x = DistributedDataParallel(nn.Linear(8, 8)), torch.ones(6, 8)
    labels, loss = torch.arange(6), F.mse_loss(model(x), x)
    losses = [loss, F.cross_entropy(model(x), labels), F.l1_loss(model(x), x), model(x).mean(), model(x).sum()]
    penalty = model.weight.square().sum()
    losses += [loss + penalty, loss - 1, loss * 2, 2 * loss, loss / 3, loss.clone(), loss.double(), -loss]
    correct = (model(x).argmax(1) == labels).sum()
    return [str(each).split(",", 1)[-1] for each in losses] + [str(loss.detach()).split(",")[-1][-1], str(correct)]


def test_a_number_in_parts_is_printed_as_in_one_process() -> None:
    (alone,) = run(1, printed)
    assert run(2, printed) == [alone] * 2


def saved(folder: Path) -> float:
    """What an object keeps of outputs and losses is whole in the file that rank 0 writes."""
    torch.manual_seed(0)
    model, keeper = DistributedDataParallel(nn.Linear(8, 8)), Keeper()
    keeper.last = model(torch.ones(6, 8)).detach()
    keeper.losses.append(keeper.last.square().mean())
    rank_zero_only(torch.save)({"keeper": keeper}, folder / "keeper.pt")
    return float(torch.load(folder / "keeper.pt", weights_only=False)["keeper"].total())


def test_what_an_object_holds_is_saved_whole(tmp_path: Path) -> None:
    (alone,) = run(1, saved, tmp_path)
    assert run(2, saved, tmp_path) == [pytest.approx(alone)] * 2
