"""Which values are sets."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.sets import is_set

from tests.codemods.checks import script_of


def is_set_at_the_end(source: str) -> bool:
    """Whether what the last call of `use` is given is a set."""
    script = script_of(source)
    calls = [call for call in script.find(ast.Call) if ast.unparse(call.func) == "use"]
    return is_set(script, calls[-1].args[0])


@pytest.mark.parametrize(
    "source",
    [
        "use({w for w in words})",
        "use(frozenset(words))",
        "known = set(words)\nuse(known)",
        "words = set(text)\nfor line in lines:\n    use(words)\nwords = sorted(words)",
        "class A:\n    def add(self):\n        self.known = set()\n    def use(self):\n        use(self.known)",
        "from collections import defaultdict\nd = defaultdict(set)\nuse(d['a'])",
        "d = {'a': set(a), 'b': {1}}\nfor v in d.values():\n    use(v)",
        "import collections\nd = collections.defaultdict(set)\nn = {k: use(v) for k, v in d.items()}",
        "m = {k: {f for f in v} for k, v in d.items()}\nm = {k: {f: i for i, f in use(v)} for k, v in m.items()}",
    ],
)
def test_sets(source: str) -> None:
    assert is_set_at_the_end(source)


@pytest.mark.parametrize(
    "source",
    [
        "use(words)",
        "known = set(words)\nknown = sorted(known)\nuse(known)",
        "known = set(words) if a else list(words)\nuse(known)",
        "from collections import defaultdict\nd = defaultdict(list)\nuse(d['a'])",
        "d = {'a': set(a)}\nfor k, v in d.items():\n    use(k)",
        "d = {}\nuse(d['a'])",
        "m = {k: set(v) for k, v in d.items()}\nm = {k: sorted(v) for k, v in m.items()}\nuse(m['a'])",
        "a = b\nb = a\nuse(a)",
    ],
)
def test_what_is_no_set(source: str) -> None:
    assert not is_set_at_the_end(source)
