"""Where ranks meet that torchrun has started again: a part of its store that is theirs alone."""

from __future__ import annotations

import pytest
from ddpify_runtime.launch import restarts
from torch.distributed import TCPStore  # type: ignore[attr-defined]

AGAIN = {"TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True", "GROUP_WORLD_SIZE": "1"}


@pytest.mark.parametrize(
    "differs",
    [{"TORCHELASTIC_RESTART_COUNT": "0"}, {"TORCHELASTIC_USE_AGENT_STORE": "False"}, {"GROUP_WORLD_SIZE": "2"}],
)
def test_torch_finds_the_store_of_a_first_start_by_itself(differs: dict[str, str]) -> None:
    assert restarts.store({**AGAIN, **differs}) is None
    assert restarts.store({}) is None


def test_a_start_does_not_see_what_an_earlier_one_left() -> None:
    agent = TCPStore("127.0.0.1", 0, is_master=True)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(agent.port)}
    first, second = (restarts.store({**AGAIN, **place, "TORCHELASTIC_RESTART_COUNT": count}) for count in "12")
    assert first is not None and second is not None
    first.set("address", "of one that died")
    second.set("address", "mine")
    assert first.get("address") == b"of one that died" and second.get("address") == b"mine"
