"""Names that are made of the time or of chance, in settings of another file, are those of rank 0 (DDP614)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import plain, refusals, training

NOW = "from datetime import datetime\nNOW = datetime.now().strftime('%H')\nPATH = 'a'\n"


def named(train: str, settings: str = NOW) -> str:
    """What becomes of a script that takes settings from another file; the reasons of a refusal."""
    files = {Path("train.py"): "import settings\n" + train, Path("settings.py"): settings}
    results = convert(files, "cpu", style="plain")
    return "".join(refusals(results[Path("settings.py")])) or results[Path("train.py")].code


def test_a_name_of_another_file_is_sent_where_it_is_used() -> None:
    code = named(training(after="import os\nos.makedirs(settings.NOW)\nprint(settings.PATH)\n"))
    assert "os.makedirs(from_rank_0(settings.NOW), exist_ok=True)" in code


def test_what_is_made_of_a_time_for_a_name_is_sent_once() -> None:
    made = "import time\nname = time.strftime('%H', time.localtime())\n"
    code = plain(training(after=f"{made}open(name)\n")).code
    assert "name = from_rank_0(time.strftime('%H', time.localtime()))\n" in code


@pytest.mark.parametrize(
    "use",
    [
        "for i in range(3):\n    open(settings.NOW + str(i))\n",
        "folder = getattr(settings, 'NOW')\n",
        "settings.NOW = 'b'\nprint(open(settings.NOW).read())\n",
        "import os\nif not os.path.exists(settings.NOW):\n    os.makedirs(settings.NOW)\n",
    ],
)
def test_a_name_that_cannot_be_sent_where_it_is_used_is_sent_where_it_is_made(use: str) -> None:
    before = training(after="open(settings.NOW)\n")
    others = named(before.replace("model = nn", "FOLDER = settings.NOW\nmodel = nn"), NOW + "A = NOW")
    for code in (named(training(after=use)), others):
        assert "from_rank_0" not in code and code.index("init_process_group") < code.index("import settings")
