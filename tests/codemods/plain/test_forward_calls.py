"""Models whose forward is called, parameters that are expanded to a batch, and shapes that are compared."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, EVALUATION, HEAD, LOOP, plain, refusals, training, undivided

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.token = nn.Parameter(torch.rand(1, 1, 4))
        self.register_buffer("graph", torch.rand(4, 4))

    def forward(self, x):
        {body}
        return self.fc.forward(x)


model = Net()
"""
COUNTS = EVALUATION.format(adds="total += (model.forward(x).argmax(1) == y).sum().item()", shown="total")
FORWARD = CE.replace("model(", "model.forward(")


def with_net(body: str = "pass", loss: str = CE, after: str = "") -> str:
    """A script that trains a network of its own."""
    head = HEAD.replace("model = nn.Linear(4, 3)\n", NET.format(body=body))
    return head + LOOP.format(loss=loss, step="optimizer.step()") + after


def test_the_forward_of_the_wrapper_is_called_in_training() -> None:
    for script in (with_net(loss=FORWARD, after=COUNTS), training(FORWARD, after=COUNTS)):
        code = plain(script).code
        assert "F.cross_entropy(ddp_model.forward(x), y)" in code
        assert "total += (model.forward(x).argmax(1) == y)" in code


def test_a_function_is_given_the_wrapper() -> None:
    steps = LOOP.format(loss=FORWARD, step="optimizer.step()").replace("\n", "\n    ").rstrip()
    function = f"def train(model, shown):\n    {steps}\n    print(shown, model.fc.weight)\n\n\n"
    code = plain(HEAD + function + "train(model, 1)\n").code
    assert "train(ddp_model, 1)" in code and "print(shown, model.module.fc.weight)" in code
    assert "F.cross_entropy(model.forward(x), y)" in code


def test_a_model_is_known_by_the_part_that_is_trained() -> None:
    head = HEAD.replace("nn.Linear(4, 3)", "nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))")
    head = head.replace("model.parameters()", "model[1].parameters()")
    for loss in (CE, FORWARD):
        assert (
            "ddp_model = DistributedDataParallel(model)"
            in plain(head + LOOP.format(loss=loss, step="optimizer.step()")).code
        )


@pytest.mark.parametrize(
    "loss", ["F.cross_entropy(model.fc.forward(x), y)", "F.cross_entropy(model.fc(x), y)", "model.forward(x).std()"]
)
def test_a_part_of_the_model_is_called_or_samples_are_coupled(loss: str) -> None:
    assert undivided(plain(with_net(loss=loss)))


@pytest.mark.parametrize(
    "body",
    [
        "x = torch.cat([self.token.expand(len(x), -1, -1), x.unsqueeze(1)], dim=1).mean(1)",
        "x = x + self.token.repeat(x.shape[0], 1, 1).squeeze(1)",
        "x = self.graph.expand(x.size(0), -1, -1).bmm(x.unsqueeze(2)).squeeze(2)",
        "x = torch.bmm(self.graph.expand(x.size(0), -1, -1), x.unsqueeze(2)).squeeze(2)",
    ],
)
def test_parameters_and_buffers_for_each_sample(body: str) -> None:
    assert not refusals(plain(with_net(body)))


def test_what_is_put_together_over_samples_of_these_is_refused() -> None:
    assert refusals(plain(with_net("x = x + self.token.expand(len(x), -1, -1).squeeze(1).cumsum(0)")))


@pytest.mark.parametrize(
    ("step", "is_refused"),
    [
        ("assert model(x).argmax(1).size() == y.size()", False),
        ("assert model(x).shape[0] == y.shape[0] and len(x) == y.size(0)", False),
        ("if x.shape != y.shape: optimizer.step()", False),
        ("if x.t().shape == y.shape: optimizer.step()", True),
        ("if model(x).size() == torch.Size([8, 3]): optimizer.step()", True),
        ("if len(x) * 2 == len(y): optimizer.step()", True),
        ("if len(x) == 6: optimizer.step()", True),
    ],
)
def test_the_shapes_of_one_batch_are_compared(step: str, is_refused: bool) -> None:
    assert bool(refusals(plain(training(step=step)))) is is_refused
