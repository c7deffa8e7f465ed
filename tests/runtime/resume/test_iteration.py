"""An iteration is brought to where another one was, and one that could not be is refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from ddpify_runtime.agreement import random_states
from ddpify_runtime.resume.iteration import Iteration, began
from torch.utils.data import DataLoader, Dataset, Sampler


class Rows(Dataset[float]):
    """Counts the rows that are loaded."""

    loaded = 0

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> float:
        self.loaded += 1
        return float(index)


class Noted(DataLoader[Any]):
    """Says when a pass over it begins, as that of the runtime does where a run may go on."""

    is_without_state = True

    def __iter__(self) -> Any:
        began(self)
        return super().__iter__()


def loader(rows: Rows | None = None) -> DataLoader[Any]:
    return Noted(rows or Rows(), batch_size=4, shuffle=True)


def rows(item: Any) -> Any:
    """A batch as data, alone or with its number."""
    return (item[0], rows(item[1])) if isinstance(item, tuple) else item.tolist()


def forever(loader: DataLoader[Any]) -> Iterator[Any]:
    while True:
        yield from loader


@pytest.mark.parametrize(("kind", "taken"), [(iter, 4), (enumerate, 2), (forever, 5), (forever, 9)])
def test_the_items_that_are_left(kind: Callable[..., Any], taken: int) -> None:
    loaders = loader(), loader()
    torch.manual_seed(7)
    one = Iteration(kind(loaders[0]))
    for _ in range(taken):
        next(one)
        torch.rand(1)  # as a step does
    state, random_numbers = one.state_dict(), random_states.read()
    left = [rows(next(one)) for _ in range(2)]
    torch.manual_seed(8)
    other = Iteration(kind(loaders[1]))
    other.load_state_dict(state)
    random_states.write(random_numbers)
    assert other.taken == taken and [rows(next(other)) for _ in range(2)] == left


class Passes(Sampler[int]):
    """Another order in each pass."""

    epoch = 0

    def __iter__(self) -> Iterator[int]:
        self.epoch += 1
        return iter(torch.randperm(24, generator=torch.Generator().manual_seed(self.epoch)).tolist())

    def __len__(self) -> int:
        return 24


def test_a_sampler_of_the_scripts_own_that_counts_its_passes() -> None:
    made = [Passes(), Passes()]
    one, other = (Iteration(forever(Noted(Rows(), batch_size=4, sampler=each))) for each in made)
    for _ in range(9):
        next(one)
    other.load_state_dict(one.state_dict())
    assert [rows(next(other)) for _ in range(5)] == [rows(next(one)) for _ in range(5)]


def test_items_that_are_passed_over_are_not_loaded() -> None:
    one = Iteration(loader())
    for _ in range(5):
        next(one)
    data = Rows()
    other = Iteration(loader(data))
    other.load_state_dict(one.state_dict())
    assert (other.taken, data.loaded) == (5, 0)
    assert len([*other]) == 1 and data.loaded == 4


def test_one_that_is_ahead_begins_again() -> None:
    made = Iteration(range(9))
    state = Iteration(range(9)).state_dict()
    assert [next(made), next(made)] == [0, 1]
    made.load_state_dict(state)
    assert [*made] == [*range(9)]


def test_an_iterator_that_is_ahead_cannot_begin_again() -> None:
    made = Iteration(iter(range(9)))
    next(made)
    with pytest.raises(RuntimeError, match="cannot be begun again"):
        made.load_state_dict(Iteration(range(9)).state_dict())


def test_one_that_has_become_shorter() -> None:
    longer = Iteration(range(9))
    for _ in range(5):
        next(longer)
    with pytest.raises(RuntimeError, match="a loop ends before item 5"):
        Iteration(range(4)).load_state_dict(longer.state_dict())


def drawn(number: Any) -> Iterator[float]:
    while True:
        yield number.random()


def test_items_that_are_drawn_from_the_numbers_of_the_steps_are_refused() -> None:
    made = Iteration(drawn(random))
    next(made)
    with pytest.raises(RuntimeError, match="draw them from a generator of their own"):
        next(made)
    own = Iteration(drawn(random.Random(3)))
    assert len({next(own) for _ in range(4)}) == 4


def test_one_that_no_checkpoint_holds_gives_no_more() -> None:
    made = Iteration(range(9))
    made.is_lost = True
    with pytest.raises(RuntimeError, match="loop over it with `for`"):
        next(made)
