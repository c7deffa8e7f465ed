"""The models that people train are divided, and train what one process trains; a dozen at every change."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("transformers", reason="pip install '.[models]'")

from .measure import measure
from .table import Entry, table
from .update_docs import PAGE

ROOM = 0.03  # what all samples share, such as embeddings of places, goes into the layers of every rank

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # those of the libraries
    ENTRIES = table()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "entry",
    [pytest.param(entry, id=name, marks=[] if entry.cheap else pytest.mark.nightly) for name, entry in ENTRIES.items()],
)
def test_a_model_is_divided_and_exact(entry: Entry) -> None:
    found = measure(entry)
    assert found.difference <= entry.tolerance
    assert found.share <= (entry.most or entry.share) + ROOM, found.said


def test_the_page_has_a_row_for_each() -> None:
    names = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert names[1:] == list(ENTRIES)
