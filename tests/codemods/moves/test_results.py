"""The results of a move: texts without the imports that nothing needs afterwards."""

from __future__ import annotations

from ddpify_codemods.found import Found
from ddpify_codemods.moves.results import results_of, without_idle_imports

from tests.codemods.checks import script_of


def test_imports_that_nothing_needs_any_more_go() -> None:
    script = script_of("import os\nimport sys\nprint(os.name, sys.argv)\n")
    assert without_idle_imports(script, "import os\nimport sys\nprint(sys.argv)\n") == "import sys\nprint(sys.argv)\n"
    assert without_idle_imports(script, script.text) == script.text


def test_results_say_how_the_program_is_started() -> None:
    script = script_of("import os\n")
    [(path, result)] = results_of([Found(script)], "torchrun {script}").items()
    assert (path, result.code, result.launch) == (script.path, script.text, "torchrun {script}")
