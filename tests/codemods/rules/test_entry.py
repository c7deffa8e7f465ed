"""DDP101: joining and leaving the process group."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.exact.entry import RULE

from ..checks import assert_silent, rewritten

INIT, DESTROY = 'init_process_group("gloo")', "destroy_process_group()"


def test_a_module_is_left_alone() -> None:
    assert_silent(RULE, "print(1)", is_entry=False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "import a\nif __name__ == '__main__':\n    main()\n",
            f"import a\nif __name__ == '__main__':\n    {INIT}\n    main()\n    {DESTROY}\n",
        ),
        (
            "import a\nLR = 1\ndef main(): pass\nif '__main__' == __name__: main()\n",
            f"import a\nLR = 1\ndef main(): pass\nif '__main__' == __name__:\n    {INIT}\n    main()\n    {DESTROY}\n",
        ),
        (
            "import a\nif __name__ == '__main__':\n    sys.exit(main())\n",
            f"import a\nif __name__ == '__main__':\n    {INIT}\n    sys.exit(main())\n",
        ),
        (
            "import a\nif __name__ == '__main__':\n    while True:\n        main()\n",
            f"import a\nif __name__ == '__main__':\n    {INIT}\n    while True:\n        main()\n",
        ),
        (
            "import a\nif __name__ == '__main__':\n    while True:\n        break\n",
            f"import a\nif __name__ == '__main__':\n    {INIT}\n    while True:\n        break\n    {DESTROY}\n",
        ),
    ],
)
def test_a_script_that_only_works_under_its_guard(before: str, after: str) -> None:
    assert rewritten(RULE, before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import a\n\nwork()\n", f"import a\n\n{INIT}\n\nwork()\n{DESTROY}\n"),
        ("import a\nfor b in c:\n    work()\n", f"import a\n\n{INIT}\nfor b in c:\n    work()\n\n{DESTROY}\n"),
        ("work()\n", f"{INIT}\nwork()\n{DESTROY}\n"),
        ("import a\nwork()\nraise SystemExit\n", f"import a\n\n{INIT}\nwork()\nraise SystemExit\n"),
        (
            "import a\nwork()\nif __name__ == '__main__':\n    main()\n",
            f"import a\n\n{INIT}\nwork()\nif __name__ == '__main__':\n    main()\n    {DESTROY}\n",
        ),
        (
            "import a\nif __name__ == '__main__':\n    main()\nwork()\n",
            f"import a\n\n{INIT}\nif __name__ == '__main__':\n    main()\nwork()\n{DESTROY}\n",
        ),
    ],
)
def test_a_script_that_works_at_module_level(before: str, after: str) -> None:
    assert rewritten(RULE, before) == after


PARSER = "import argparse, torch\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr')\n"
GUARDED = "if __name__ == '__main__':\n"


@pytest.mark.parametrize("declared", ["", "import logging\nlogging.basicConfig(level=20)\n", "EPOCHS = 3\n"])
def test_declarations_leave_both_lines_under_the_guard(declared: str) -> None:
    before = f"{PARSER}{declared}{GUARDED}    main()\n"
    assert rewritten(RULE, before) == f"{PARSER}{declared}{GUARDED}    {INIT}\n    main()\n    {DESTROY}\n"


@pytest.mark.parametrize(
    "work",
    [
        "log = logging.FileHandler('a')\n",
        "logging.basicConfig(filename='a')\n",
        "parser = make()\n",
        "torch.manual_seed(1)\n",
    ],
)
def test_other_work_wants_the_group_first(work: str) -> None:
    lines = rewritten(RULE, f"import logging\n{PARSER}{work}{GUARDED}    main()\n").splitlines()
    assert lines[3] == INIT


def test_xla_names_its_rendezvous() -> None:
    lines = rewritten(RULE, "import a\nwork()\n", "xla").splitlines()
    assert lines[1:3] == ["import ddpify_runtime.xla", "import torch_xla"]
    assert 'init_process_group("xla", init_method="xla://")' in lines
