"""The checkpoint's file: written at once or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from ddpify_runtime.resume import file


def test_a_checkpoint_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    folder = str(tmp_path / "new" / "folder")
    assert file.read(folder) is None
    for epoch in range(2):
        file.write(folder, {"epoch": epoch, "weight": torch.full((2,), float(epoch))})
    found = file.read(folder)
    assert found is not None and found["epoch"] == 1 and found["weight"].tolist() == [1.0, 1.0]
    assert [path.name for path in Path(folder).iterdir()] == [file.NAME]


def test_one_that_was_not_finished_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write(str(tmp_path), {"epoch": 1})

    def fail(*given: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", fail)
        with pytest.raises(OSError, match="no space left"):
            file.write(str(tmp_path), {"epoch": 2})
    assert file.read(str(tmp_path)) == {"epoch": 1}
    assert [path.name for path in tmp_path.iterdir()] == [file.NAME]
