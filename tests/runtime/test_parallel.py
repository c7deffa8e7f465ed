"""What one process trains, two, three and four train: the parameters after every step, to float tolerance."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddpify_runtime import DataParallel, DistributedDataParallel
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .processes import run

Step = Callable[[nn.Module, Tensor, Tensor], Iterator[Tensor]]
CASES: dict[str, tuple[Callable[[], nn.Module], Step]] = {}


def case(model: Callable[[], nn.Module]) -> Callable[[Step], Step]:
    """Register a way to train `model`: it yields the losses to call backward on, in order."""

    def register(step: Step) -> Step:
        CASES[step.__name__] = model, step
        return step

    return register


class Classifier(nn.Module):
    """8 features, 3 classes, and room for trouble."""

    def __init__(self, *middle: nn.Module) -> None:
        super().__init__()
        self.first = nn.Linear(8, 6)
        self.middle = nn.Sequential(*middle)
        self.head = nn.Linear(6, 3)
        self.never_used = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.middle(torch.tanh(self.first(x))))  # type: ignore[no-any-return]


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3))


@case(linear)
def mean(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(linear)
def sum_and_regulariser(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y, reduction="sum") + 0.1 * sum(p.square().sum() for p in model.parameters())


@case(linear)
def divided_by_hand(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    output = model(x)
    yield F.cross_entropy(output, y, reduction="sum") / 12 + (output - x[:, :3]).square().sum() / len(x)


@case(linear)
def masked_and_weighted(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y, weight=torch.tensor([1.0, 2.0, 5.0]), ignore_index=1)


@case(linear)
def contrastive(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    z = F.normalize(model(x), dim=1)
    yield F.cross_entropy(z @ z.T / 0.5, y % len(x))


@case(linear)
def one_forward_two_backwards(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    output = model(x)
    yield F.cross_entropy(output, y)
    yield output.square().mean()


@case(linear)
def two_forwards_two_backwards(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    a, b = model(x), model(x.flip(1))
    yield F.cross_entropy(a, y)
    yield b.square().mean()


@case(Classifier)
def unused_parameters(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(Classifier)
def round_the_forward(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y) + model.head(torch.tanh(model.first(x))).square().mean()


@case(Classifier)
def frozen_by_turns(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    model.first.requires_grad_(bool(y.sum() % 2))
    yield F.cross_entropy(model(x), y)


@case(linear)
def frozen_after_the_forward(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    loss = F.cross_entropy(model(x), y)
    model[0].requires_grad_(False)
    yield loss
    model[0].requires_grad_(True)


@case(lambda: Classifier(nn.BatchNorm1d(6)))
def batch_norm(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(lambda: Classifier(nn.BatchNorm1d(6)).double())
def batch_norm_with_a_gradient_penalty(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    """In float64: the second derivative of a batch of 2 amplifies the rounding of float32."""
    x = x.double().requires_grad_()
    output = model(x)
    (slope,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
    yield F.cross_entropy(output, y) + slope.square().mean()


class Activated(nn.BatchNorm1d):
    """A batch normalisation with a forward of its own, as timm has."""

    def forward(self, input: Tensor) -> Tensor:
        assert self.momentum is not None
        given = input, self.running_mean, self.running_var, self.weight, self.bias
        return torch.relu(F.batch_norm(*given, training=self.training, momentum=self.momentum, eps=self.eps))


@case(lambda: Classifier(nn.Linear(6, 6, bias=False), Activated(6), nn.Linear(6, 6), Activated(6)))
def batch_norm_of_a_class_of_its_own(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(lambda: Classifier(nn.BatchNorm1d(6, momentum=None, affine=False)))
def batch_norm_cumulative(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(lambda: Classifier(nn.Dropout(0.4)))
def dropout(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class Noisy(nn.Module):
    """A variational autoencoder's noise, and a categorical draw."""

    def __init__(self) -> None:
        super().__init__()
        self.to_code, self.back = nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.to_code(x)
        noisy = code + torch.randn_like(code) + torch.bernoulli(torch.sigmoid(code.detach()))
        return self.back(noisy), code


@case(Noisy)
def noise_in_forward(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    recovered, code = model(x)
    yield 0.01 * (F.mse_loss(recovered, x, reduction="sum") + code.square().sum())


class TimeFirst(nn.Module):
    """A language model of the old school: (time, batch), hidden state (layers, batch, width), flattened output."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.out = nn.LSTM(2, 5, num_layers=2, dropout=0.2), nn.Linear(5, 3)

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        y, state = self.rnn(x, state)
        return self.out(y).view(-1, 3), state


@case(TimeFirst)
def time_first(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    sequence = x.view(len(x), 4, 2).transpose(0, 1).contiguous()
    _, state = model(sequence)
    output, _ = model(sequence, tuple(part.detach() for part in state))
    yield F.cross_entropy(output, y.repeat(4))


class HiddenFirst(nn.Module):
    """Takes the hidden state before the batch, as old tutorials do; its samples are in the second dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, hidden: Tensor, x: Tensor) -> Tensor:
        return self.head(self.cell(x, hidden)[0][:, -1])  # type: ignore[no-any-return]


@case(HiddenFirst)
def hidden_first(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x.new_zeros(1, len(x), 5), x.view(-1, 2, 4)), y)


class SideOutput(Classifier):
    """Keeps a term for the loss as an attribute."""

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = super().forward(x)
        self.term = output.square().mean()
        return output


@case(SideOutput)
def side_output(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y) + model.term


TEMPERATURE = torch.ones(1, requires_grad=True)


class UsesAForeignTensor(Classifier):
    """Its forward uses a trained tensor that it does not own."""

    def __init__(self) -> None:
        super().__init__()
        self.unregistered = [TEMPERATURE]

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.unregistered[0]


@case(UsesAForeignTensor)
def foreign_tensor(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)
    assert TEMPERATURE.grad is not None
    TEMPERATURE.data.sub_(0.1 * TEMPERATURE.grad)
    TEMPERATURE.grad = None


class BatchCoupled(Classifier):
    """Looks at the other samples."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - 0.01 * x.mean(0))


@case(BatchCoupled)
def batch_coupled(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class MixesLater(Classifier):
    """Mixes samples with a strength that is learnt from zero."""

    def __init__(self) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = super().forward(x)
        return y + self.strength * y.mean(0)


@case(MixesLater)
def mixing_from_zero(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class UnitGradient(torch.autograd.Function):
    """The identity, with a backward that looks at the whole batch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        gradient = gradients[0]
        scaled: Tensor = gradient / gradient.norm()
        return scaled


class OwnBackward(Classifier):
    def forward(self, x: Tensor) -> Tensor:
        return UnitGradient.apply(super().forward(x))  # type: ignore[no-any-return, no-untyped-call]


@case(OwnBackward)
def backward_that_mixes(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class ComputesAgain(torch.autograd.Function):
    """x + layer(x), which keeps nothing for its backward: that computes the layer again, and calls backward itself."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: nn.Module) -> Tensor:
        ctx.x, ctx.layer = x.detach(), layer
        with torch.no_grad():
            return x + layer(x)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        x = ctx.x.clone().requires_grad_()
        with torch.enable_grad():
            torch.autograd.backward(ctx.layer(x), gradients[0])
        return gradients[0] + x.grad, None


class Reversible(Classifier):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(ComputesAgain.apply(torch.tanh(self.first(x)), self.middle))  # type: ignore[no-any-return, no-untyped-call]


@case(lambda: Reversible(nn.Linear(6, 6)))
def reversible(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class FillsAList(Classifier):
    """Keeps its features in a list that the loss reads."""

    def __init__(self) -> None:
        super().__init__()
        self.features: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.features.append(torch.tanh(self.first(x)))
        return super().forward(x)


@case(FillsAList)
def filled_list(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y) + model.features[-1].square().mean()
    assert len(model.features[-1]) == len(x)
    model.features.clear()


class Experts(Classifier):
    """Rows choose which parameters are used, so the ranks use different ones."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = super().forward(x)
        result = torch.zeros_like(y)
        choice = (x[:, 0] * 10).long().remainder(4)
        for number, expert in enumerate(self.experts):
            if (choice == number).any():
                result = result.index_add(0, (choice == number).nonzero()[:, 0], expert(y[choice == number]))
        return result


@case(Experts)
def experts(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class Checkpointed(Classifier):
    """Computes its middle again in the backward, dropout included."""

    reentrant = False

    def forward(self, x: Tensor) -> Tensor:
        y = checkpoint(self.middle, torch.tanh(self.first(x)), use_reentrant=self.reentrant)
        return self.head(y)  # type: ignore[no-any-return]


@case(lambda: Checkpointed(nn.Linear(6, 6), nn.Dropout(0.3)))
def checkpointed_dropout(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class ReentrantlyCheckpointed(Checkpointed):
    reentrant = True


@case(lambda: ReentrantlyCheckpointed(nn.Linear(6, 6), nn.BatchNorm1d(6)))
def checkpointed_batch_norm(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class Keeps(Classifier):
    """Keeps things of its own: a running centre, counts in a dict, a running maximum, a generator."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.centre, self.counts, self.scale = what, torch.zeros(6), {"steps": 0}, 1.0
        if what == "generator":
            self.generator = torch.Generator().manual_seed(4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.first(x))
        self.counts["steps"] += 1
        if self.what == "centre":
            self.centre.mul_(0.9).add_(0.1 * h.detach().mean(0))
            h = h - self.centre
        elif self.what == "scale":
            self.scale = 0.9 * self.scale + 0.1 * x.abs().max().item()
        elif self.what == "generator":
            h = h + 0.1 * torch.randn(h.shape, generator=self.generator)
        return self.head(h) / self.scale * (1 + 0.1 * self.counts["steps"])  # type: ignore[no-any-return]


def train_plainly(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


for kept in ("centre", "counts", "scale", "generator"):
    CASES[f"keeps_{kept}"] = partial(Keeps, kept), train_plainly


@case(linear)
def clamped_by_a_hook(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    if not model[0].weight._backward_hooks:
        model[0].weight.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    yield F.cross_entropy(model(x), y)


class HasModes(Classifier):
    """An argument decides what it does."""

    def forward(self, x: Tensor, centred: bool = False) -> Tensor:
        return super().forward(x - x.mean(0) if centred else x)


@case(HasModes)
def modes(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)
    yield F.cross_entropy(model(x, centred=True), y)


class Measures(Classifier):
    """Returns a number that is a constant only at first."""

    steps = 0

    def forward(self, x: Tensor) -> Any:
        self.steps += 1
        y: Tensor = super().forward(x)
        return y, y.detach().max() * (self.steps > 1)


@case(Measures)
def a_measure_in_the_output(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    output, largest = model(x)
    yield F.cross_entropy(output, y) * (1 + largest)


@case(linear)
def interrupted_backward(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    output = model(x)

    def fail(gradient: Tensor) -> None:
        raise ValueError

    output.register_hook(fail)
    with pytest.raises(ValueError):
        output.sum().backward()
    yield F.cross_entropy(model(x), y)


@case(linear)
def changed_precision(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    model.double()
    yield F.cross_entropy(model(x.double()), y)


@case(lambda: nn.utils.spectral_norm(nn.Linear(8, 3)))
def spectral_norm(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class OwnLoss(Classifier):
    """Returns its loss, over the labels that count."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        output: Tensor = super().forward(x)
        return output, F.cross_entropy(output, y, ignore_index=0)


@case(OwnLoss)
def loss_from_the_model(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y)[1]


class OwnLosses(Classifier):
    """Returns one loss of many kinds: means, sums, weights, masks, and one over its parameters."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        output: Tensor = super().forward(x)
        weight = torch.tensor([1.0, 2.0, 5.0])
        losses = [
            F.cross_entropy(output, y, weight=weight, ignore_index=0, label_smoothing=0.1),
            F.nll_loss(F.log_softmax(output, 1), y, weight=weight),
            F.cross_entropy(output, F.softmax(x[:, :3], 1)),
            nn.MSELoss()(output, x[:, :3]),
            F.smooth_l1_loss(output, x[:, :3], reduction="sum"),
            F.kl_div(F.log_softmax(output, 1), F.softmax(x[:, :3], 1), reduction="batchmean"),
            F.triplet_margin_loss(output, x[:, :3], x[:, 3:6]),
            (output.square() * (x[:, :3] > 0)).sum() / (x[:, :3] > 0).sum(),
            torch.mean(output.sigmoid()) * output.mean(),
            0.1 * self.head.weight.square().mean(),
        ]
        return torch.stack(losses).sum(0)


@case(OwnLosses)
def losses_from_the_model(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y) / 5


class Heard(Classifier):
    """Returns a loss over sequences of several lengths, and wants the gradient of its samples, as Wav2Vec2 does."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        x = x[:, :]
        x.requires_grad = True
        steps = super().forward(x)[:, None] * x[:, :5, None]
        scores = F.log_softmax(steps, 2).transpose(0, 1)
        targets = torch.stack([1 + y % 2, 2 - y % 2], 1)
        return F.ctc_loss(scores, targets, torch.full_like(y, 5), y % 3, zero_infinity=True)


@case(Heard)
def loss_over_sequences_from_the_model(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y)


class PenalisesZero(Classifier):
    """Penalises a parameter that starts at zero, where a sum over ranks looks like the sum of one."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return F.cross_entropy(super().forward(x) + self.shift, y) + self.shift.square().sum()


@case(PenalisesZero)
def penalty_from_zero(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y)


_steps: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()


def count_step(model: nn.Module) -> int:
    """The number of this step, kept outside of the model: it is tried again where it shows another number."""
    _steps[model] = _steps.get(model, 0) + 1
    return _steps[model]


class SelectsSome(Classifier):
    """Its second loss is over samples of one kind, of which the first batches have none."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        output: Tensor = super().forward(x)
        return F.cross_entropy(output, y) + output[y == 2].square().sum()


@case(SelectsSome)
def selection_that_starts_empty(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y if count_step(model) > 2 else y % 2)


class DecidesByTheBatch(Classifier):
    """Scales a batch that has a large value, which the first batches have not, and later not every share."""

    def forward(self, x: Tensor) -> Tensor:
        if x.abs().max() > 3:
            x = x / 4
        return super().forward(x)


class DecidesByAList(Classifier):
    """The same in plain Python."""

    def forward(self, x: Tensor) -> Tensor:
        largest = max(max(row) for row in x.abs().tolist())
        return super().forward(x / 4 if largest > 3 else x)


class DecidesByOneSample(Classifier):
    """By the second sample, which another rank has."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / 4 if x[1, 0].item() > 3 else x)


class ScalesByTheBatch(Classifier):
    """By a number that is not read, and changes nothing until it is large."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / x.abs().max().clamp(min=4))


@case(DecidesByTheBatch)
def decision_by_a_value(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    x = x.clamp(-2, 2)
    if count_step(model) > 3:
        x[1, 0] = 5
    yield F.cross_entropy(model(x), y)


CASES["decision_in_python"] = DecidesByAList, decision_by_a_value
CASES["scaled_by_the_batch"] = ScalesByTheBatch, decision_by_a_value
CASES["decision_by_a_sample"] = DecidesByOneSample, decision_by_a_value


class PenalisesItself(Classifier):
    """Adds a sum over its parameters, which must not be summed over ranks."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return F.cross_entropy(super().forward(x), y) + 0.1 * self.head.weight.square().sum()


@case(PenalisesItself)
def penalty_from_the_model(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y)


@case(linear)
def gradient_penalty(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    x = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    yield ((slope.norm(dim=1) - 1) ** 2).mean()


@case(lambda: DataParallel(linear()))
def data_parallel(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(lambda: nn.Sequential(nn.LazyLinear(6), nn.Tanh(), nn.Linear(6, 3)))
def lazy_parameters(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(lambda: nn.Sequential(nn.Embedding(40, 6, sparse=True), nn.Flatten(), nn.Linear(48, 3)))
def sparse_gradients(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model((x.abs() * 10).long().clamp(max=39)), y)


class Mixes(nn.Module):
    """A layer that looks at the other samples, without parameters."""

    def forward(self, x: Tensor) -> Tensor:
        return x - 0.1 * x.mean(0)


def changing(change: Callable[[Any], None]) -> Step:
    """From the third step on, the model is another (M7)."""

    def step(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
        if count_step(model) == 3:
            change(model)
        yield F.cross_entropy(model(x), y)

    return step


def replacing(layer: Callable[[], nn.Module]) -> Step:
    """From the third step on, another layer is in the middle."""
    return changing(lambda model: setattr(model, "middle", layer()))


def in_place_of_a_method(model: Any) -> None:
    """As libraries of adapters do: another function computes what a part does."""
    forward = model.middle.forward
    model.middle.forward = lambda x: forward(x) - 0.1 * forward(x).mean(0)


CASES["replaced_by_batch_norm"] = Classifier, replacing(lambda: nn.BatchNorm1d(6, affine=False))
CASES["replaced_by_dropout"] = Classifier, replacing(lambda: nn.Dropout(0.3))
CASES["replaced_by_a_layer_that_mixes"] = Classifier, replacing(Mixes)
CASES["replaced_forward_of_a_part"] = Classifier, changing(in_place_of_a_method)
CASES["replaced_class_of_a_part"] = Classifier, changing(lambda model: setattr(model.middle, "__class__", Mixes))


def train(name: str, reduction: Literal["ddp", "native"] = "ddp") -> list[Tensor]:
    """Parameters, gradients and buffers after each of 7 steps; batches of 12, 5 and 2 samples."""
    build, step = CASES[name]
    torch.manual_seed(3)
    model = DistributedDataParallel(build(), reduction=reduction)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    history: list[Tensor] = []
    for size in (12, 12, 5, 12, 12, 2, 12):
        x, y = torch.randn(size, 8), torch.randint(0, 3, (size,))
        optimizer.zero_grad()
        for loss in step(model, x, y):
            loss.backward(retain_graph=True)
        optimizer.step()
        gradients = [p.grad.to_dense() for p in model.parameters() if p.grad is not None]
        state = [value.detach().double().flatten() for value in (*model.state_dict().values(), *gradients)]
        history.append(torch.cat(state))
    return history


@pytest.mark.parametrize("name", [name for name in CASES if name != "sparse_gradients"])
@pytest.mark.filterwarnings("ignore")
def test_one_all_reduce_does_what_the_buckets_do(name: str) -> None:
    assert_trains_the_same(name, 3, "native")


@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int) -> None:
    assert_trains_the_same(name, world_size, "ddp")


def assert_trains_the_same(name: str, world_size: int, reduction: Literal["ddp", "native"]) -> None:
    (alone,) = run(1, train, name)
    ranks = run(world_size, train, name, reduction)
    tolerance = 1e-5 if "batch_norm" in name else 1e-6
    for step, expected in enumerate(alone):
        for history in ranks:
            assert torch.equal(history[step], ranks[0][step]), f"ranks differ at step {step}"
        difference = (ranks[0][step] - expected).norm() / expected.norm()
        assert difference <= tolerance, f"step {step}: {difference:.1e}"


def rows_seen(model: nn.Module, reduction: Literal["ddp", "native"] = "ddp") -> int:
    """How many samples this rank's forward sees of a batch of 12."""
    seen = watch(model)
    x, y = torch.randn(12, 8), torch.arange(12) % 3
    returns_loss = isinstance(model, (OwnLoss, OwnLosses, PenalisesItself, Heard))
    DistributedDataParallel(model, reduction=reduction)(*((x, y) if returns_loss else (x,)))
    return seen[-1]


def watch(model: nn.Module) -> list[int]:
    """How many samples the first layer sees, call by call."""
    seen: list[int] = []
    first: Any = next(iter(model.children()))
    forward = first.forward

    def counting(x: Tensor, *others: Any) -> Any:
        seen.append(len(x))
        return forward(x, *others)

    first.forward = counting
    return seen


def hidden_rows() -> int:
    model = DistributedDataParallel(HiddenFirst())
    seen = watch(model)
    model(torch.zeros(1, 12, 5), torch.randn(12, 2, 4))
    return seen[-1]


def test_samples_may_be_in_the_second_dimension() -> None:
    assert run(3, hidden_rows) == [4, 4, 4]


def test_each_rank_computes_its_share() -> None:
    for model in (linear(), OwnLoss(), OwnLosses(), PenalisesItself(), Heard(), Classifier(Activated(6))):
        assert run(3, rows_seen, model) == [4, 4, 4]
    assert run(3, rows_seen, linear(), "native") == [4, 4, 4]


def shared_part(reduction: Literal["ddp", "native"], views: bool) -> list[Tensor]:
    """Models that share a layer, called before the backward, a third one from step 2 on; parameters after each step."""
    torch.manual_seed(3)
    shared = nn.Linear(6, 5)
    ours = [nn.Sequential(nn.Linear(8, 6), shared, nn.Tanh(), nn.Linear(5, 3)) for _ in range(3)]
    parameters = list(dict.fromkeys(parameter for model in ours for parameter in model.parameters()))
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    history = []
    for step in range(4):
        x, y = torch.randn(11, 8), torch.randint(0, 3, (11,))
        optimizer.zero_grad()
        used = ours if step > 1 else ours[:2]
        models = [DistributedDataParallel(m, gradient_as_bucket_view=views, reduction=reduction) for m in used]
        outputs = [model(x) for model in models]
        (F.cross_entropy(outputs[0], y) + sum(output.square().sum() for output in outputs[1:]) / 5).backward()
        optimizer.step()
        history.append(torch.cat([parameter.detach().flatten() for parameter in parameters]))
    return history


@pytest.mark.parametrize(("reduction", "views"), [("ddp", False), ("ddp", True), ("native", False)])
def test_models_may_share_a_part(reduction: Literal["ddp", "native"], views: bool) -> None:
    (alone,) = run(1, shared_part, reduction, views)
    for history in run(3, shared_part, reduction, views):
        for expected, found in zip(alone, history, strict=True):
            assert (found - expected).norm() <= 1e-6 * expected.norm()


def identity() -> dict[str, bool]:
    model = linear()
    distributed = DistributedDataParallel(model)
    distributed(torch.randn(4, 8)).sum().backward()
    return {
        "same object": distributed is model and type(model) is nn.Sequential,
        "again": DistributedDataParallel(model) is model,
        "keys": list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"],
        "pickle": b"ddpify" not in pickle.dumps(model),
        "copy": "_compiled_call_impl" not in vars(copy.deepcopy(model)),
    }


def test_the_model_stays_the_users() -> None:
    for answer in run(2, identity):
        assert all(answer.values()), answer


def different_batches() -> str:
    model = DistributedDataParallel(linear())
    torch.manual_seed(int(torch.distributed.get_rank()))
    try:
        model(torch.randn(12, 8))
    except RuntimeError as error:
        return str(error)
    return ""


def test_different_batches_are_an_error() -> None:
    for message in run(2, different_batches):
        assert "drew different batches" in message and "PYTHONHASHSEED" in message


def different_models(kind: str) -> str:
    """The message of a first forward, when the rank decides about the model."""
    rank = dist.get_rank()
    torch.manual_seed(rank if kind == "weights" else 0)
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2 + rank if kind == "sizes" else 2))
    try:
        DistributedDataParallel(model)(torch.arange(8))
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["weights", "sizes", ""])
def test_different_models_are_an_error(kind: str) -> None:
    for message in run(2, different_models, kind):
        assert message.startswith("ddpify: Sequential is not the same on every process") if kind else not message


STEP = [0]  # of a loop; no module can be seen to depend on it


class ChangesItsWays(Classifier):
    """Starts to look at other samples after a while."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean(0) if STEP[0] > 8 else x)


def change() -> str:
    model = DistributedDataParallel(ChangesItsWays())
    try:
        for STEP[0] in range(16):
            model(torch.randn(12, 8))
    except RuntimeError as error:
        return str(error)
    return ""


def test_a_model_that_begins_to_mix_samples_is_an_error() -> None:
    for message in run(2, change):
        assert "ChangesItsWays" in message and "depend on the rest of the batch" in message


class CutsToTheLongest(nn.Module):
    """Gives the time steps that any of its samples has."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        there = (torch.arange(6) < lengths[:, None]).any(0)
        return self.layer(x[:, there])  # type: ignore[no-any-return]


def cut() -> str:
    """Sequences of one length at first, which divide; in the third batch not every rank has a long one."""
    model = DistributedDataParallel(CutsToTheLongest())
    try:
        for step in range(3):
            model(torch.randn(8, 6, 5), torch.tensor([6, 5] * 4 if step == 2 else [6] * 8))
    except RuntimeError as error:
        return f"{step}: {error}"
    return ""


def test_sizes_that_come_from_values_are_compared() -> None:
    for message in run(2, cut):
        assert message.startswith("2: ddpify: the training forward of CutsToTheLongest returned rows of another size")


class RoundsWorse(Classifier):
    """Differs a little with the size of the batch, as the order of a sum does; later more than at first."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (1 + (1e-7 if STEP[0] < 2 else 5e-6) * len(x))


class RoundsBadly(Classifier):
    """Differs with the size of the batch, later by 5000 times the rounding of its numbers (6e-4, in float64 1e-12)."""

    seen: ClassVar[list[int]] = []

    def __init__(self, begin: int) -> None:
        super().__init__()
        self.begin = begin

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(len(x))
        return super().forward(x) * (1 + (5000 if STEP[0] >= self.begin else 0) * torch.finfo(x.dtype).eps * len(x))


def round_badly(begin: int) -> int:
    model = DistributedDataParallel(RoundsBadly(begin))
    for STEP[0] in range(5):
        model(torch.randn(12, 8))
    return model.seen[-1]


def round_worse() -> int:
    model = DistributedDataParallel(RoundsWorse())
    seen = watch(model)
    for STEP[0] in range(5):
        model(torch.randn(12, 8))
    return seen[-1]


def test_a_model_that_rounds_worse_later_goes_on() -> None:
    assert run(2, round_worse) == [6, 6]


@pytest.mark.parametrize("begin", [0, 2])
def test_a_model_that_rounds_badly_is_judged_in_float64(begin: int) -> None:
    assert run(2, round_badly, begin) == [6, 6]
