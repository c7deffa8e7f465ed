"""What a run wrote into its folder, as plain values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from ddpify.verify.contents import read


def test_files_of_each_kind(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("loss 0.5\n")
    (tmp_path / "raw").write_bytes(b"\xff\xfe\x00")
    np.save(tmp_path / "values.npy", np.arange(3))
    torch.save({"net": {"weight": torch.ones(2)}, "epoch": 3}, tmp_path / "model.pt")
    (tmp_path / "train.py").write_text("")
    found = read(tmp_path, {"train.py"}, tmp_path / "train.py")
    assert set(found) == {"logs/", "logs/a.txt", "raw", "values.npy", "model.pt"}
    assert found["logs/a.txt"] == "loss 0.5\n" and found["raw"] == b"\xff\xfe\x00"
    assert found["values.npy"]["values.npy"].tolist() == [0, 1, 2]
    assert any("epoch" in str(key) and value == 3 for key, value in found["model.pt"].items())
