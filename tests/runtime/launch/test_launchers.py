"""The launchers whose processes a converted script can be: one row each."""

from __future__ import annotations

import pytest
from ddpify_runtime.launch.launchers import LAUNCHERS, Environment, Launcher


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: launcher.name)
def test_the_place_of_a_process(launcher: Launcher) -> None:
    here = {launcher.local_rank: "1", launcher.rank: "1", launcher.world_size: "4"}
    assert launcher.place(here) == Environment(1, 4, 1)
    for name in here:
        assert launcher.place({key: value for key, value in here.items() if key != name}) is None


@pytest.mark.parametrize(("rank", "words"), [("4", "is not below"), ("one", "must be numbers"), ("-1", "is not below")])
def test_variables_that_make_no_sense_are_an_error(rank: str, words: str) -> None:
    with pytest.raises(RuntimeError, match=f"torchrun: .*{words}"):
        LAUNCHERS[0].place({"RANK": rank, "WORLD_SIZE": "4", "LOCAL_RANK": "0"})
