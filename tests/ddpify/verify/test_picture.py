"""The curves of two runs, as a picture and a page."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ddpify.verify.picture import write

FOUND: Any = SimpleNamespace(
    steps=2,
    losses=([1.0, 0.5], [1.0, 0.5]),
    parameters=[0.0, 1e-8],
    gradients=[0.0, 1e-7],
    tolerance=1e-6,
    differences=[],
)


def test_a_page_with_its_picture_and_a_row_for_each_step(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    said = list(write(FOUND, folder, "<train>", ["all is equal"]))
    assert [line.split()[0] for line in said] == ["wrote", "wrote"]
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text()
    assert page.count("<tr><td>") == 2 and "&lt;train&gt;" in page and "all is equal" in page
