"""Loops that go on where they were: what is done is skipped, and what the loop had is put back.

A checkpoint is taken where the body of a loop begins. It holds, for each loop around that place, how many items were
done, what `carried` was given, and the random numbers at the body's begin; and the states of all objects. To go on, the
script runs anew up to there: the body of the outer loop is begun once more with the random numbers that it began with,
so that the inner loop has the same items, and those that were done are passed over. Then all states are put back.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from torch.utils.data import DataLoader

from ..agreement import random_states
from ..process_group import get_world_size
from . import file, iteration
from .due import Due
from .iteration import Iteration
from .run import VERSION, Loop, Run, loaders, read_state
from .states import put_back

T = TypeVar("T")

_LOOKED_AT = 3  # calls of `carried` in which it is seen whether the values can be carried

_run: Run | None = None


def resume_from(folder: str, every_seconds: float = 600, every_steps: int | None = None) -> None:
    """Write checkpoints into a folder, and go on from the one that is there; stands behind init_process_group.

    Args:
        folder: where rank 0 writes `checkpoint.pt`, and looks for it at the start.
        every_seconds: of the time between two checkpoints. every_steps: instead of it, the steps between two.
    """
    global _run
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        return  # a spawned DataLoader worker that imports the script again
    _run = run = Run(os.path.abspath(folder), Due(every_seconds, every_steps))
    run.saved = file.read(run.folder)
    if run.saved is None:
        run.start = random_states.read()
    elif run.saved["version"] != VERSION:
        raise RuntimeError(f"ddpify: the checkpoint in {run.folder} is of another version: remove it to begin anew")
    else:
        run.start = run.saved["start"]
        random_states.write(run.start)


def restore(*values: Any, **objects: Any) -> Any:
    """Name what the training changes, after all of it is made and before its loop: models, optimizers, schedulers,
    lists, objects of the script. If the run goes on, they get the states of the checkpoint.

    Args:
        values: those that a checkpoint of the script's own may have decided, such as the epoch to begin with.

    Returns:
        The values with which the run began; one alone without a tuple.

    Raises:
        RuntimeError: it is not known what one of them holds; or the script has come here with other random numbers than
            when it was saved, so that its data may be another.
    """
    run = _run
    if run is not None:
        values = _restored(run, values, objects)
    return values[0] if len(values) == 1 else values


def _restored(run: Run, values: tuple[Any, ...], objects: dict[str, Any]) -> tuple[Any, ...]:
    run.begin(objects)
    if run.saved is None:
        for name, each in objects.items():
            read_state(each, name, set())
        run.began.append([read_state(value, f"value {at + 1} of restore()", None) for at, value in enumerate(values)])
        return values
    run.began.append(run.saved["began"][run.training])
    values = tuple(put_back(value, state) for value, state in zip(values, run.began[-1], strict=True))
    saved = run.saved
    if saved["world_size"] == get_world_size() and saved["before"][run.training] != run.before[-1]:
        raise RuntimeError(
            f"ddpify: the script comes to its training with other random numbers than the run in {run.folder}, so its "
            "data may be split otherwise: seed it by a constant, or remove the folder to begin anew"
        )
    if not run.is_past:
        run.put_objects_back(saved["objects"], iterations=False)
    if run.stdout is not None:
        return values
    at = " / ".join(str(loop[0]) for loop in saved["loops"])
    others = "" if saved["arguments"] == sys.argv[1:] else f"; its arguments were {' '.join(saved['arguments'])}"
    print(f"ddpify: goes on from {run.folder} at {at}{others}", file=sys.stderr, flush=True)
    run.stdout, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115  what comes now was printed before
    return values


def resumable(iterable: Iterable[T]) -> Iterator[T]:
    """The items of a loop, but for those that are done; checkpoints are written between them.

    Raises:
        RuntimeError: the loop cannot be brought to where it was.
    """
    run = _run
    if run is None or run.objects is None:
        yield from iterable
        return
    if run.ignores_loops:
        return
    loop = Loop(Iteration(iterable))
    assert loop.items is not None
    items = iter(loop.items)
    depth = run.begin_loop(loop)
    try:
        while True:
            is_due = run.begin_round(depth)
            try:
                item = next(items)
            except StopIteration:
                return
            run.save_if(is_due, depth)
            yield item
            loop.done += 1
            run.is_outer.setdefault(depth, False)
    finally:
        del run.loops[depth:]


def goes_on(test: Any) -> bool:
    """Whether a `while` loop has another round: `while goes_on(step < steps)`; as `resumable` for other loops.

    Args:
        test: of the loop. Of the `while` loops around one place, one alone may be given here.

    Raises:
        RuntimeError: the loop has no round where it was in one.
    """
    run = _run
    if run is None or run.objects is None:
        return bool(test)
    if run.ignores_loops:
        return False
    depth = next((at for at, loop in enumerate(run.loops) if loop.items is None), len(run.loops))
    if depth < len(run.loops):
        run.loops[depth].done += 1
        run.is_outer.setdefault(depth, False)
    elif run.saved is not None and not test:
        raise RuntimeError(f"ddpify: a `while` loop is not begun now, in which the run in {run.folder} was")
    else:
        run.begin_loop(Loop())
    if not test:
        del run.loops[depth:]
        return False
    run.save_if(run.begin_round(depth), depth)
    return True


def counted(iterable: Iterable[T]) -> Iteration[T] | Iterable[T]:
    """What the script takes items of by itself: `batches = iter(counted(loader))`, then `next(batches)`.

    Returns:
        The same items; it can be begun once.
    """
    if _run is None:
        return iterable
    made = Iteration(iterable)
    iteration.counted.add(made)
    return made


def carried(*values: Any) -> Any:
    """What the loop has added up so far; stands where its body begins: `best, step = carried(best, step)`.

    After a loop, where another training follows, it stands for what the loop has left.

    Returns:
        The values that it is given, or, where the run goes on, those of the checkpoint; one alone without a tuple.

    Raises:
        RuntimeError: it is not known what one of them holds.
    """
    run = _run
    if run is not None and run.objects is not None and not run.loops:
        values = run.finish(values)
    elif run is not None and run.loops:
        loop, depth = run.loops[-1], len(run.loops) - 1
        run.carries[depth] = called = run.carries.get(depth, 0) + 1
        if loop.back is not None:
            random = run.random()
            values = tuple(put_back(value, state) for value, state in zip(values, loop.back, strict=True))
            run.put_random_back(random)  # an iteration that was made anew has drawn
            loop.back = None
        is_outer = run.is_outer.get(depth, True)
        if run.is_due or is_outer or called <= _LOOKED_AT:
            states = [read_state(value, f"value {at + 1} of carried()", None) for at, value in enumerate(values)]
            loop.values = copy.deepcopy(states) if is_outer else states
        if run.is_due:
            run.save()
    return values[0] if len(values) == 1 else values


def track(loader: DataLoader[Any]) -> None:
    """Note a loader that the script makes, for its generators."""
    if _run is not None:
        if loader.persistent_workers:
            raise RuntimeError(
                "ddpify: workers that persist keep random numbers of their own: persistent_workers=False"
            )
        loaders.append(weakref.ref(loader))


def iterated(loader: DataLoader[Any]) -> None:
    """Note the loader that is looped over."""
    if _run is not None:
        iteration.began(loader)
