"""Where a value comes from at one place."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.reaching import reaching_origins

from tests.codemods.checks import node_of, script_of, sources_of


@pytest.mark.parametrize(
    ("lines", "made"),
    [
        ("x = a()\nx = b()\nuse(x)\nx = c()", ["b()"]),
        ("x = a()\nif late:\n    x = b()\nuse(x)\nx = c()", ["a()", "b()"]),
        ("if late:\n    x = b()\nuse(x)\nx = c()", ["b()", "c()"]),
        ("x = a()\nfor step in range(3):\n    use(x)\n    x = b()", ["a()", "b()"]),
        ("for x in a():\n    use(x)\n    x = b()", ["a()"]),
        ("for step in range(3):\n    x = a()\n    use(x)\n    x = b()", ["a()"]),
        ("x = a()\ny = x\nx = b()\nuse(y)", ["a()"]),
        ("x = a()\nx = f(use(x))", ["a()"]),
        ("with a() as x:\n    use(x)\nx = b()", []),
        ("x = []\nx.append(a())\nuse(x)\nx.append(b())", ["[]", "a()"]),
        ("for step in range(3):\n    def f():\n        x = a()\n        use(x)\n        x = b()", ["a()"]),
    ],
)
def test_what_a_name_was_given_when_it_is_read(lines: str, made: list[str]) -> None:
    script = script_of(lines)
    value = node_of(script, "use(x)" if "use(x)" in lines else "use(y)").args[0]
    found = [each for each in sources_of(reaching_origins(script, value)) if each not in ("x", "y")]
    assert sorted(found) == made
