"""The pages of the rules are those that the rules make."""

from __future__ import annotations

from tests.update_docs import FOLDER, pages


def test_the_pages_are_up_to_date() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == pages(), "run python -m tests.update_docs"


def test_every_page_shows_what_happens() -> None:
    assert all("```diff\n---" in page or "refused" in page for name, page in pages().items() if name != "README.md")
