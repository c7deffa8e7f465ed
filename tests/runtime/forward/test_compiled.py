"""A model that is compiled, watched by hooks, called by its forward: it trains the same, and says how."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel, report
from torch import Tensor, nn

from tests.runtime.processes import run

eager_rows: set[int] = set()


class Net(nn.Module):
    def __init__(self, *middle: nn.Module, loss: bool = False) -> None:
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(8, 5), nn.Sequential(*middle), nn.Linear(5, 3)
        self.loss = loss

    def forward(self, x: Tensor, y: Tensor) -> Any:
        if not torch.compiler.is_compiling():
            eager_rows.add(len(x))
        logits = self.last(self.middle(torch.tanh(self.first(x))))
        return F.cross_entropy(logits, y) if self.loss else logits


Way = Callable[[nn.Module, Callable[..., Any]], Callable[..., Any]]
WAYS: dict[str, Way] = {}


def way(function: Way) -> Way:
    """Register how the model is made ready once it is routed; what it returns is called in training."""
    WAYS[function.__name__] = function
    return function


@way
def compiled_later(model: nn.Module, backend: Any) -> Any:
    return torch.compile(model, backend=backend)


@way
def compiled_by_a_decorator(model: nn.Module, backend: Any) -> Any:
    return torch.compile(backend=backend)(model)


@way
def compiled_in_place(model: nn.Module, backend: Any) -> Any:
    model.compile(backend=backend)
    return model


@way
def compiled_forward(model: Any, backend: Any) -> Any:
    model.forward = torch.compile(model.forward, backend=backend)
    return model


@way
def compiled_part(model: Any, backend: Any) -> Any:
    model.first = torch.compile(model.first, backend=backend)
    return model


@way
def called_while_compiling(model: nn.Module, backend: Any) -> Any:
    @torch.compile(backend=backend)
    def predict(x: Tensor, y: Tensor) -> Any:
        return model(x, y)

    return predict


@way
def called_by_its_forward(model: nn.Module, backend: Any) -> Any:
    return model.forward


@way
def watched_forward(model: Any, backend: Any) -> Any:
    model.last.register_forward_hook(lambda module, given, output: output.clamp(max=float(output.mean())))
    return model


@way
def watched_gradient(model: Any, backend: Any) -> Any:
    model.first.weight.register_hook(lambda gradient: gradient.clamp(-1e-3, 1e-3))
    return model


@way
def watched_sum_of_gradients(model: Any, backend: Any) -> Any:
    def limit(parameter: Tensor) -> None:
        assert parameter.grad is not None
        parameter.grad.clamp_(-1e-3, 1e-3)

    model.first.weight.register_post_accumulate_grad_hook(limit)
    return model


def compiled_before(model: nn.Module, backend: Any) -> Any:
    return model


WHOLE = {
    "called_while_compiling": "it is never called itself",
    "called_by_its_forward": "it is never called itself",
    "watched_forward": "a hook on last sees its batches",
    "watched_gradient": "a hook on first.weight sees its gradients",
    "watched_sum_of_gradients": "a hook on first.weight sees its gradients",
}
MODELS: dict[str, Callable[[], Net]] = {
    "plain": Net,
    "loss": lambda: Net(loss=True),
    "batch_norm": lambda: Net(nn.BatchNorm1d(5)),
    "dropout": lambda: Net(nn.Dropout(0.3)),
}


def train(name: str, model_name: str, samples: int = 12) -> tuple[Tensor, set[int], set[int], list[str]]:
    """The parameters, the numbers of rows that were computed eagerly and compiled, and what was said."""
    os.environ["DDPIFY_RANDOM"] = "original"
    torch.manual_seed(0)
    eager_rows.clear()
    original = MODELS[model_name]()
    compiled_rows: set[int] = set()

    def backend(graph: Any, examples: list[Any]) -> Any:
        def rows(*given: Any) -> Any:
            compiled_rows.update(len(x) for x in given if type(x) is Tensor and x.shape[1:] == (8,))
            return graph(*given)

        return rows

    routed: Any = torch.compile(original, backend=backend) if name == "compiled_before" else original
    optimizer = torch.optim.SGD(routed.parameters(), lr=0.5)
    routed = DistributedDataParallel(routed)
    model = (WAYS | {"compiled_before": compiled_before})[name](routed, backend)
    generator = torch.Generator().manual_seed(1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(5):
            x, y = torch.randn(samples, 8, generator=generator), torch.randint(3, (samples,), generator=generator)
            output = model(x, y)
            (output if original.loss else F.cross_entropy(output, y)).backward()
            optimizer.step()
            optimizer.zero_grad()
    report.finish()
    texts = [str(each.message) for each in said if str(each.message).startswith("ddpify")]
    return torch.nn.utils.parameters_to_vector(original.parameters()).detach(), set(eager_rows), compiled_rows, texts


def every(cases: list[tuple[str, str]]) -> list[Any]:
    return [train(*each) for each in cases]


CASES = [
    *((name, "plain") for name in [*WAYS, "compiled_before"]),
    *((name, model) for name in ("compiled_later", "compiled_in_place") for model in ("loss", "batch_norm", "dropout")),
    *((name, model) for name in ("compiled_forward", "compiled_before") for model in ("loss", "batch_norm")),
]


def test_a_model_trains_the_same_however_it_is_called() -> None:
    alone = run(1, every, CASES)[0]
    for rank, answers in enumerate(run(2, every, CASES)):
        for (name, model), expected, found in zip(CASES, alone, answers, strict=True):
            case = f"{name} of {model} on rank {rank}"
            close = 1e-5 if model == "batch_norm" else 1e-6
            assert (found[0] - expected[0]).norm() <= close * expected[0].norm(), case
            _, eager, compiled, said = found
            if name in WHOLE:
                assert rank or (len(said) == 1 and WHOLE[name] in said[0]), (case, said)
                assert 12 in eager | compiled and 6 not in eager | compiled, case
            else:
                assert not said, (case, said)
                if model == "plain":
                    assert compiled == {6}, (case, compiled)
                assert 6 in eager | compiled, case


def few() -> list[str]:
    """Fewer samples than processes; then enough; then the short end of an epoch."""
    return [text for samples in (1, 12, 1) for text in train("compiled_before", "plain", samples)[3]]


def test_batches_smaller_than_the_world_are_said_once() -> None:
    for said in run(2, few):
        assert len(said) == 2
        assert all("it is given fewer samples than there are processes" in text for text in said)
