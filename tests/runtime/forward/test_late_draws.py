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
        first = torch.rand
        late_draws.watch()
        return torch.rand is first

    assert run(1, once) == [True]
