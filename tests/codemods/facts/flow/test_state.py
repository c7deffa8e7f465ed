"""What is known while a program is followed."""

from __future__ import annotations

from ddpify_codemods.facts.flow.frames import ByNext, Joined, Lengths
from ddpify_codemods.facts.flow.statements import Follower

from tests.codemods.checks import script_of

ENTRY = script_of("import net\nx = net.y\n")


def follower() -> Follower:
    return Follower(
        [ENTRY], {}, set(), {}, set(), set(), {}, set(), ByNext(), {}, Joined(), set(), Lengths(), set(), set()
    )


def test_each_file_has_one_frame() -> None:
    state = follower()
    assert state.module_frame(ENTRY) is state.module_frame(ENTRY)


def test_problems_are_kept_with_their_place() -> None:
    state = follower()
    frame = state.module_frame(ENTRY)
    state.problem(frame, ENTRY.tree.body[1], "cannot be followed")
    (problem,) = state.found.problems
    assert (problem.script, problem.node, problem.reason) == (ENTRY, ENTRY.tree.body[1], "cannot be followed")


def test_modules_that_are_not_of_the_program() -> None:
    assert follower().local_module("torch") is None
