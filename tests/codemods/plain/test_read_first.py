"""Files that all ranks read before rank 0 writes them anew: it waits for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_files import TRAINED

READ = "    dist.barrier()\n    if dist.get_rank() == 0:\n        torch.save(2, "


@pytest.mark.parametrize(
    "written",
    [
        "if not os.path.exists('b.pt') or torch.load('b.pt') > 2:\n    torch.save(2, 'b.pt')",
        "if torch.load('b.pt') > 2:\n    torch.save(2, 'b.pt')",
        "best = torch.load('b.pt')\nif best > 2:\n    torch.save(2, 'b.pt')",
        "def best():\n    return torch.load('b.pt')\nif best() > 2:\n    torch.save(2, 'b.pt')",
        "with open('b.pt') as file:\n    best = json.load(file)\nif best > 2:\n    torch.save(2, 'b.pt')",
        "best = json.loads(Path('b.pt').read_text())\nif best > 2:\n    torch.save(2, Path('b.pt'))",
    ],
)
def test_a_file_is_written_anew_when_all_have_read_it(written: str) -> None:
    """A slower rank would read what is half written, or decide by what is new."""
    path = Path("train.py")
    script = "import json\nfrom pathlib import Path\n" + TRAINED.format(before="", each="", after=written)
    result = convert({path: script}, "cpu", style="plain")[path]
    assert not [each for each in result.findings if each.severity == "refused"]
    assert READ in result.code
    assert convert({path: result.code}, "cpu", style="plain")[path].code == result.code


@pytest.mark.parametrize(
    "written",
    [
        "best = torch.load('a.pt')\nif best > 2:\n    torch.save(2, 'b.pt')",
        "best = torch.load('b.pt')\nfor x, y in loader:\n    total = model(x).sum()\nif best > 2:\n"
        "    torch.save(2, 'b.pt')",
        "torch.save(3, 'a.pt')\nbest = torch.load('a.pt')\nif best > 2:\n    torch.save(2, 'b.pt')",
    ],
)
def test_nobody_waits_for_those_that_read_another_file_or_much_earlier(written: str) -> None:
    path = Path("train.py")
    result = convert({path: TRAINED.format(before="", each="", after=written)}, "cpu", style="plain")[path]
    assert READ not in result.code
