"""What operations make of the samples of a batch: distributions, dictionaries, modules that compute losses."""

from __future__ import annotations

import pytest

from .test_followed import CE, plain, refusals, training, undivided


@pytest.mark.parametrize(
    ("loss", "right"),
    [
        ('F.mse_loss(model(x)[:, 0], y.float(), reduction="sum").div(x.size(0))', True),
        ("F.mse_loss(model(x)[:, 0], y.float()).div(x.size(0))", False),
        ("F.mse_loss(model(x), torch.zeros(x.size(0), 3).scatter_(1, y.view(-1, 1), 1.0))", True),
        ("F.mse_loss(model(x), torch.zeros(x.size(0), 3).scatter_(0, y.view(1, -1), 1.0))", False),
        ("F.mse_loss(model(x), F.one_hot(y, 3).float())", True),
        ("F.mse_loss(model(x), F.one_hot(y, num_classes=3).float())", True),
        ("F.mse_loss(model(x), F.one_hot(y).float())", False),  # as many classes as a rank's largest label tells
        ("model(x).gather(1, y.expand(2, 1, y.size(0)).permute(2, 1, 0)[:, :, 0]).mean()", True),
        ("(model(x)[:, 0] * y.expand(8, y.size(0))).mean()", False),
        ("F.upsample(model(x)[:, None], scale_factor=2).mean()", True),
        ("F.upsample(model(x).t()[None], scale_factor=2).pow(2).mean()", False),
        ("F.local_response_norm(model(x)[:, :, None], 2).mean()", True),
        ("F.local_response_norm(model(x)[None], 2).pow(2).mean()", False),
    ],
)
def test_operations_along_and_across_samples(loss: str, right: bool) -> None:
    assert bool(undivided(plain(training(loss)))) is not right


@pytest.mark.parametrize(
    ("out", "right"),
    [
        ("model(x).reshape([x.shape[0], -1])", True),
        ("model(x).reshape([-1, 3, 1]).permute([0, 2, 1]).view([len(x), 3])", True),
        ("model(x).view([3, -1]).permute([1, 0])", False),
        ("model(x).permute([1, 0]).softmax(1).permute([1, 0])", False),
    ],
)
def test_sizes_may_be_given_in_a_list(out: str, right: bool) -> None:
    source = training(f"F.cross_entropy({out}, y)")
    assert bool(undivided(plain(source))) is not right
    assert bool(undivided(plain(source.replace("([", "((").replace("])", "))")))) is not right


@pytest.mark.parametrize("turned", ["permute(*dims)", "permute(dims)", "transpose(*dims)", "swapaxes(first, second)"])
@pytest.mark.parametrize("along", ["softmax(1)", "softmax(-1)", "max(1)[0]", "cumsum(1)"])
def test_dimensions_that_are_exchanged_in_a_way_that_is_not_seen(turned: str, along: str) -> None:
    """The samples may lie along any of them."""
    source = "dims = [1, 0]\nfirst, second = dims\n" + training(f"model(x).{turned}.{along}.pow(2).mean()")
    assert undivided(plain(source))


@pytest.mark.parametrize(
    ("weights", "right"),
    [
        ("torch.rand(len(x), 1).repeat(1, 4)", True),
        ("torch.rand((len(x), 1)).to(x.device).repeat(1, x.size(1))", True),
        ("torch.rand(x.shape[0], 1, 1).repeat(1, 4, 1).squeeze(2)", True),
        ("torch.rand(len(x)).repeat(1, 4).view(4, -1).t()", False),
        ("torch.rand(len(x), 1).repeat(2, 4)[: len(x)]", False),
        ("torch.rand(len(x), 1).repeat(1, len(x))[:, :4]", False),
        ("torch.rand(*x.shape).repeat(1, 1, 1)[0]", False),
    ],
)
def test_numbers_of_each_sample_may_be_repeated(weights: str, right: bool) -> None:
    assert bool(undivided(plain(training(f"F.cross_entropy(model(x * {weights}), y)")))) is not right


DISTRIBUTION = """\
normal = torch.distributions.Normal(model(x), torch.ones_like(model(x)))
        other = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
        loss = {loss}
"""


@pytest.mark.parametrize(
    ("loss", "right"),
    [
        ("-normal.log_prob(x[:, :3]).sum(1).mean()", True),
        ("torch.distributions.kl_divergence(normal, other).sum(1).mean()", True),
        ("F.mse_loss(normal.rsample(), x[:, :3])", True),
        ("-other.log_prob(model(x)).mean()", True),
        ("-normal.log_prob(x[:, :3]).sum(1).max()", False),
        ("normal.rsample((5,)).sum(0).max()", False),
        ("-normal.log_prob(x[:, :3].mean(0)).mean()", False),
        ("torch.distributions.kl_divergence(normal, torch.distributions.Normal(model(x).mean(0), 1.0)).mean()", False),
    ],
)
def test_distributions_of_each_sample(loss: str, right: bool) -> None:
    source = training().replace(f"loss = {CE}", DISTRIBUTION.format(loss=loss).rstrip())
    assert bool(undivided(plain(source))) is not right


MODULE = """\
class Perception(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(3, 3)

    def forward(self, score, output):
        {result}


criterion = Perception()
"""


@pytest.mark.parametrize(
    ("result", "right"),
    [
        ("return F.mse_loss(self.features(output), output) + 0.1 * score", True),
        ("return (output * score).mean()", False),
        ("return self.features(output) * score", False),
        ("return output.pow(2).sum() / output.size(0) + torch.mean(1 - score)", True),
        ("return output.pow(2).sum() + score", False),
    ],
)
def test_a_module_with_layers_that_is_given_a_mean(result: str, right: bool) -> None:
    loss = "criterion(model(x).mean(), model(x))"
    source = training(loss).replace("for epoch", MODULE.format(result=result) + "for epoch", 1)
    assert bool(undivided(plain(source))) is not right


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("log = dict(loss=loss.item())\n        print(log['loss'])", "mean_over_ranks(log['loss'])"),
        ("log = OrderedDict([('loss', loss.item())])\n        print(log['loss'])", "mean_over_ranks(log['loss'])"),
        ("losses.append([loss.item(), 2 * loss.item()])\n        print(sum(losses[-1]))", "mean_over_ranks("),
    ],
)
def test_numbers_in_dictionaries_and_lists(step: str, code: str) -> None:
    source = training(step=f"optimizer.step()\n        {step}")
    source = source.replace("for epoch", "from collections import OrderedDict\nlosses = []\nfor epoch", 1)
    result = plain(source)
    assert not refusals(result)
    assert code in result.code


def test_lists_of_means_and_sums_are_not_brought_together_as_one() -> None:
    step = "losses.append([loss.item(), len(x)])\nprint(losses)"
    assert refusals(plain(training(step=step).replace("for epoch", "losses = []\nfor epoch", 1)))


def test_a_layer_that_is_derived_from_one_of_torch_gives_back_something_for_each_sample() -> None:
    layer = """\
class Signs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.sign()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Binary(nn.Linear):
    def forward(self, value):
        if value.size(1) != 4:
            value = Signs.apply(value)
        return F.linear(value, Signs.apply(self.weight), self.bias)


"""
    source = training().replace("model = nn.Linear(4, 3)", layer + "model = nn.Sequential(Binary(4, 5), Binary(5, 3))")
    assert not refusals(plain(source))
