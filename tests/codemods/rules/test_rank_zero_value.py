from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed

IMPORTS = "import glob, os\nfrom pathlib import Path\n"
WRITES = "torch.save(1, 'a.pt')\n"
WRITTEN = "rank_zero_only(torch.save)(1, 'a.pt')\n"


def test_a_script_that_writes_nothing_keeps_its_checks() -> None:
    check_noop("if os.path.exists('a.pt'):\n    x = torch.load('a.pt', map_location='cpu')", imports=IMPORTS)


@pytest.mark.parametrize(
    "lines",
    [
        "assert os.path.exists('data')",
        "print(os.listdir('data'))",
        "names = [name for name in range(3) if os.path.isfile(str(name))]",
        "path = os.path.join('a', 'b')",
        "class Store:\n    def exists(self):\n        return True\nfound = Store().exists()",
    ],
)
def test_what_decides_nothing_stays(lines: str) -> None:
    check_transformed(WRITES + lines, WRITTEN + lines, imports=IMPORTS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if not os.path.isdir('a'):\n    x = 1", "if not rank_zero_value(os.path.isdir)('a'):\n    x = 1"),
        ("found = Path('a').exists()", "found = rank_zero_value(Path('a').exists)()"),
        ("names = sorted(glob.glob('*.pt'))", "names = sorted(rank_zero_value(glob.glob)('*.pt'))"),
        ("names = [name for name in os.listdir('.') if os.path.isfile(name)]",
         "names = [name for name in rank_zero_value(os.listdir)('.') if os.path.isfile(name)]"),
    ],
)  # fmt: skip
def test_rank_zero_looks_for_all(before: str, after: str) -> None:
    check_transformed(WRITES + before, WRITTEN + after, imports=IMPORTS)


def test_a_directory_made_where_there_is_none() -> None:
    check_transformed(
        "if not os.path.exists('a'):\n    os.mkdir('a')",
        "if not rank_zero_value(os.path.exists)('a'):\n    rank_zero_only(os.mkdir)('a')",
        imports=IMPORTS,
    )
