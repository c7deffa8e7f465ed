"""The state of torch's generator on the host, read and written where torch keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from ddpify_runtime import host_generator


@pytest.fixture(params=["memory", "tensors"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both ways to know a state: torch's memory, and for a torch that keeps it otherwise its tensors."""
    if request.param == "tensors":
        monkeypatch.setattr(host_generator, "_memory", lambda: None)
    before = torch.get_rng_state()
    yield request.param
    torch.set_rng_state(before)


def test_this_torch_keeps_it_where_we_look() -> None:
    assert host_generator._place() is not None


def test_it_is_found_whatever_tensors_are_made_by_default() -> None:
    host_generator._place.cache_clear()
    with torch.device("meta"):
        assert host_generator._place() is not None


DRAWS: list[Callable[[], torch.Tensor]] = [
    lambda: torch.rand(1),
    lambda: torch.randn(1),  # one of two numbers, of which the other is kept in hand
    lambda: torch.randn(1, dtype=torch.float64),
    lambda: torch.randint(10, (624,)),  # all words once
    lambda: torch.randperm(5),
    lambda: torch.nn.functional.dropout(torch.ones(9)),
]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("draw", DRAWS)
def test_each_draw_moves_it_and_it_can_be_put_back(draw: Callable[[], torch.Tensor]) -> None:
    torch.manual_seed(3)
    for _ in range(2):
        before, state = host_generator.read(), torch.get_rng_state()
        drawn = draw()
        assert not host_generator.same(before, host_generator.read())
        host_generator.write(before)
        assert host_generator.same(before, host_generator.read())
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(draw(), drawn)


@pytest.mark.usefixtures("way")
def test_a_state_goes_into_a_checkpoint_and_back_as_torch_has_it() -> None:
    torch.manual_seed(4)
    torch.randn(1)
    state = torch.get_rng_state()
    assert torch.equal(host_generator.as_tensor(host_generator.read()), state)
    torch.rand(3)
    host_generator.write(host_generator.of_tensor(state))
    assert torch.equal(torch.get_rng_state(), state)
