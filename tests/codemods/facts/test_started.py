"""What a script's functions get as processes."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.started import handed_over, is_number_of_process, starts

from tests.codemods.checks import script_of, sources_of

SCRIPT = script_of("""
import torch.multiprocessing as mp
def worker(rank, size, data):
    pass
mp.spawn(worker, args=(2, "set"), nprocs=2)
""")


def test_spawn_gives_the_number_of_the_process_first() -> None:
    (start,) = starts(SCRIPT)
    assert (start.function, sources_of(start.given), start.numbered) == ("worker", ["2", "'set'"], True)
    function = next(SCRIPT.find(ast.FunctionDef))
    assert is_number_of_process(SCRIPT, function, "rank") and not is_number_of_process(SCRIPT, function, "size")
    assert sources_of(handed_over(SCRIPT, function, "data")) == ["'set'"]


def test_nothing_is_started() -> None:
    assert starts(script_of("spawn(worker)")) == ()
