"""Random numbers that a forward begins to draw after it was divided."""

from __future__ import annotations

import torch
from ddpify_runtime.forward import late_draws, rank_stream, region

from tests.runtime.processes import run


def late() -> list[str]:
    late_draws.watch()
    answers = []
    with region.within(region.Region("shard", 8, 4)):
        rank_stream.begin(torch.device("cpu"))
        try:
            for shape in [(), (3,), (4, 2)]:
                try:
                    answers.append("drawn" if torch.rand(shape).shape == torch.Size(shape) else "other")
                except RuntimeError as error:
                    answers.append("stopped" if "began to draw random numbers" in str(error) else str(error))
        finally:
            rank_stream.end()
    return [*answers, str(torch.rand(4).shape[0])]


def test_what_may_be_meant_for_samples_stops_the_run() -> None:
    assert run(2, late) == [["drawn", "drawn", "stopped", "4"]] * 2


def test_torch_is_watched_once() -> None:
    def once() -> bool:
        late_draws.watch()
        first = torch.Tensor.normal_
        late_draws.watch()
        return torch.Tensor.normal_ is first

    assert run(1, once) == [True]


def of_others() -> list[bool]:
    """Which function torch.rand is outside of a divided forward, and what a script has put in the place of another."""
    rand = torch.rand
    late_draws.watch()
    torch.randn = own = lambda *size: torch.ones(size)  # type: ignore[assignment]
    found = [torch.rand is rand]
    for _ in range(2):
        with rank_stream.own_random_numbers(torch.device("cpu")):
            found += [torch.rand is not rand, torch.randn is own]
        found += [torch.rand is rand, torch.randn is own]
    return found


def test_functions_are_torch_s_or_the_script_s_outside_of_divided_forwards() -> None:
    assert run(2, of_others) == [[True] * 9] * 2
