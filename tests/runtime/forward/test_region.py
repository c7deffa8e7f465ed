"""Where the program is: in a divided forward, at a rank's own samples, or in what one rank does alone."""

from __future__ import annotations

import threading

from ddpify_runtime.forward import region


def test_a_region_is_left_on_the_way_it_was_entered() -> None:
    here = region.Region("shard", 8, 4)
    assert region.current() is None
    with region.within(here):
        assert region.current() is here
        before = region.enter(None)
        assert before is here and region.current() is None
        region.enter(before)
    assert region.current() is None


def test_a_region_is_that_of_its_thread() -> None:
    seen: list[region.Region | None] = []
    with region.within(region.Region("shard", 8, 4)):
        thread = threading.Thread(target=lambda: seen.append(region.current()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_what_one_rank_does_alone() -> None:
    assert not region.alone()
    with region.on_one_rank():
        assert region.alone() and region.alone_for_good()
        with region.on_all_ranks():
            assert not region.alone()
        assert region.alone()
    with region.on_one_rank(others_follow=True):
        assert region.alone() and not region.alone_for_good()
    assert not region.alone()


def test_loading_begins_and_ends() -> None:
    assert not region.loading()
    assert region.load(True) is False and region.loading()
    assert region.load(False) is True and not region.loading()
