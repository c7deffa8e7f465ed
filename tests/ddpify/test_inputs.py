"""What the paths on the command line stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpify.files import BadInput
from ddpify.inputs import gather


def test_a_file_named_twice_counts_once(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    found = gather([str(script), str(tmp_path / "." / "train.py")])
    assert len(found.named) == len(found.sources) == 1
    assert gather([str(script)]).single and not gather([str(tmp_path)]).single


def test_what_cannot_be_looked_at_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.ipynb").write_text("{}")
    for path in ("nowhere.py", "empty", "note.ipynb"):
        with pytest.raises(BadInput):
            gather([str(tmp_path / path)])
