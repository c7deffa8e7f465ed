"""What a script does outside of itself."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from ddpify_codemods.facts.effects import (
    effects,
    handed_on,
    has_unknown_mode,
    mode_of,
    opened_for_writing,
    reads,
    under_rank_guard,
    writes,
)

from tests.codemods.checks import node_of, script_of, sources_of


@pytest.mark.parametrize(
    ("source", "does"),
    [
        ("os.makedirs('runs')", True),
        ("torch.save(x, 'model.pt')", True),
        ("os.path.join('a', 'b')", False),
        ("torch.load('model.pt')", False),
        ("lmdb.open('cache', map_size=9)", True),
        ("lmdb.open('cache', readonly=False)", True),
        ("lmdb.open('cache', readonly=True)", False),
        ("profiler.export_chrome_trace('trace.json')", True),
        ("torch.cuda.memory._dump_snapshot('snapshot')", True),
        ("np.zeros(3).dump('a')", True),
        ("pickler.dump(3)", False),
        ("Path('a').hardlink_to('b')", True),
        ("os.utime('a', None)", True),
        ("os.chmod('a', 0o644)", True),
        ("server.chmod('a')", False),
    ],
)
def test_calls_that_write(source: str, does: bool) -> None:
    script = script_of(f"import lmdb, os, torch\nimport numpy as np\n{source}")
    assert writes(script, script.tree.body[-1].value) is does  # type: ignore[attr-defined]


@pytest.mark.parametrize(("opened", "does"), [("Image.open('a.png')", True), ("open('a.png', 'wb')", False)])
def test_what_is_written_into_an_open_file_is_that_files(opened: str, does: bool) -> None:
    script = script_of(f"import scipy.misc as m\nfrom PIL import Image\npicture = {opened}\nm.imsave(x, picture)")
    assert writes(script, script.tree.body[-1].value) is does  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "made",
    [
        "from tensorboard import SummaryWriter\nw = SummaryWriter('runs')",  # as tensorboardX was called first
        "import tensorboard\nw = tensorboard.SummaryWriter('runs')",
        "from tensorboard.writer import FileWriter\nw = FileWriter('runs')",
        "from tensorboardX.writer import SummaryWriter\nw = SummaryWriter('runs')",
    ],
)
def test_older_names_of_what_writes_for_tensorboard(made: str) -> None:
    script = script_of(made)
    assert writes(script, script.tree.body[1].value)  # type: ignore[attr-defined]
    own = replace(script, modules=frozenset({"tensorboard"}))
    assert writes(own, own.tree.body[1].value) is ("tensorboardX" in made)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("source", "writing", "unknown", "mode"),
    [
        ("open(p, 'w')", True, False, "w"),
        ("open(p, mode='ab')", True, False, "ab"),
        ("open(p)", False, False, "r"),
        ("open(p, 'r')", False, False, "r"),
        ("open(p, m)", False, True, None),
        ("open(p, 'a' if m else 'w')", True, False, "w"),
        ("open(p, 'r' if m else 'w')", False, True, None),
    ],
)
def test_how_a_file_is_opened(source: str, writing: bool, unknown: bool, mode: str | None) -> None:
    script = script_of(f"x = {source}")
    call = node_of(script, source)
    assert (opened_for_writing(script, call) is not None) is writing
    assert has_unknown_mode(script, call) is unknown
    assert mode_of(script, call) == mode


def test_the_effects_of_a_file_in_its_order() -> None:
    script = script_of("import os, torch\nos.mkdir('a')\nx = torch.load('b')\nf = open('c', 'w')")
    assert sources_of(effects(script)) == ["os.mkdir('a')", "open('c', 'w')"]
    assert reads(script, node_of(script, "torch.load('b')"))


def test_the_author_lets_one_process_write() -> None:
    script = script_of("import torch.distributed as dist\nif dist.get_rank() == 0:\n    open('a', 'w')\nopen('b', 'w')")
    assert under_rank_guard(script, node_of(script, "open('a', 'w')"))
    assert not under_rank_guard(script, node_of(script, "open('b', 'w')"))


@pytest.mark.parametrize(
    ("opened", "unknown"),
    [
        ("Path('a').open(mode)", True),
        ("Path('a').open('w' if mode else 'a')", False),
        ("archive.open(member)", False),
    ],
)
def test_how_a_path_is_opened(opened: str, unknown: bool) -> None:
    script = script_of(f"from pathlib import Path\nx = {opened}")
    call = node_of(script, opened)
    assert has_unknown_mode(script, call) is unknown
    assert writes(script, call) is ("'a' if" not in opened and "'w' if" in opened)


@pytest.mark.parametrize(
    ("source", "given"),
    [
        ("list(map(os.remove, files))", [("os.remove", False)]),
        ("save = partial(torch.save, state)", [("torch.save", False)]),
        ("pool.submit(torch.save, state, path)", [("torch.save", True)]),
        ("Thread(target=torch.save, args=(state, path)).start()", [("torch.save", True)]),
        ("pool.map(os.remove, files)", [("os.remove", True)]),
        ("atexit.register(os.remove, path)", []),
        ("list(map(os.path.exists, files))", []),
    ],
)
def test_functions_that_others_call(source: str, given: list[tuple[str, bool]]) -> None:
    script = script_of(f"import os, torch\n{source}")
    assert [(ast.unparse(function), beside) for function, _, beside in handed_on(script)] == given


def test_a_mode_that_is_handed_over_is_not_known() -> None:
    """Callers in other files may read."""
    script = script_of("def opened(path, mode):\n    return open(path, mode)\nopened('a', 'w')\n")
    assert has_unknown_mode(script, node_of(script, "open(path, mode)"))
