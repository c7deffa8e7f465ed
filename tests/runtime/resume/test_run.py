"""The training of a process: what it holds, and what a checkpoint of another one is refused for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from ddpify_runtime.resume import file
from ddpify_runtime.resume.due import Due
from ddpify_runtime.resume.run import VERSION, Loop, Run, read_state


def begun(folder: Path, **objects: Any) -> Run:
    """A run whose training has begun with some objects."""
    run = Run(str(folder), Due(600, 1))
    run.begin(objects)
    return run


def saved(folder: Path, **objects: Any) -> dict[str, Any]:
    """The checkpoint of the first round of a loop."""
    run = begun(folder, **objects)
    depth = run.begin_loop(Loop())
    assert run.begin_round(depth)
    run.save()
    checkpoint = file.read(str(folder))
    assert checkpoint is not None and checkpoint["version"] == VERSION
    return checkpoint


def test_objects_and_random_numbers_are_put_back_where_the_loop_arrives(tmp_path: Path) -> None:
    checkpoint = saved(tmp_path, scores=[1, 2])
    drawn = torch.rand(1)
    scores: list[int] = []
    run = begun(tmp_path, scores=scores)
    run.saved = checkpoint
    run.begin_loop(Loop())
    assert scores == [1, 2]
    assert run.saved is None
    assert torch.equal(torch.rand(1), drawn)


def test_other_objects_are_refused(tmp_path: Path) -> None:
    checkpoint = saved(tmp_path, scores=[1])
    run = begun(tmp_path, losses=[])
    run.saved = checkpoint
    with pytest.raises(RuntimeError, match=r"holds scores, the script gives restore\(\) losses"):
        run.begin_loop(Loop())


def test_a_training_that_ends_before_the_place_is_refused(tmp_path: Path) -> None:
    checkpoint = saved(tmp_path)
    run = begun(tmp_path)
    run.saved = checkpoint
    with pytest.raises(RuntimeError, match="its loops are shorter now"):
        run.finish(())


def test_another_training_is_refused(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.finish(())
    with pytest.raises(RuntimeError, match="another training begins"):
        _ = run.ignores_loops
    run = begun(tmp_path)
    with pytest.raises(RuntimeError, match="another training begins"):
        run.begin({})


def test_what_is_not_known_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"`the thing` is a builtins\.object"):
        read_state(object(), "the thing", None)
