"""What is seen to be a path."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.effects import writes
from ddpify_codemods.facts.paths import is_path

from tests.codemods.checks import node_of, script_of

IMPORTS = "import pathlib\nfrom dataclasses import dataclass\nfrom pathlib import Path\nfrom typing import Optional\n"


@pytest.mark.parametrize(
    ("source", "does"),
    [
        ("p = Path('a')\np.rename('b')", True),
        ("p = pathlib.Path('a') / 'b'\np.rename('b')", True),
        ("p = 'b' / Path('a')\n(p / 'c').with_suffix('.d').rename('b')", True),
        ("for p in sorted(Path('a').glob('*')):\n    p.rename('b')", True),
        ("p = Path('a').parents[0]\np.rename('b')", True),
        ("def f(p: Path):\n    p.rename('b')", True),
        ("def f(p: 'Path'):\n    p.rename('b')", True),
        ("def f(p: Optional[Path] = None):\n    p.rename('b')", True),
        ("def f(p: str | Path):\n    p.rename('b')", True),
        ("def f(p: str):\n    p.rename('b')", False),
        ("def f(p: Path):\n    pass\ndef g(p):\n    p.rename('b')", False),
        ("def f(p):\n    p.rename('b')\nf(Path('a'))", True),
        ("p: Path = make()\np.rename('b')", True),
        ("@dataclass\nclass A:\n    p: Path\n    def f(self):\n        self.p.rename('b')", True),
        (
            "class A:\n  def __init__(self):\n    self.p = Path('a')\n  def f(self):\n    self.p.rename('b')",
            True,
        ),
        ("p = table[0]\np.rename('b')", False),
        ("p = frame / 2\np.rename('b')", False),
        ("p = Path('a').name\np.rename('b')", False),
        ("p = str(Path('a'))\np.rename('b')", False),
        ("p = Path('a').read_text()\np.rename('b')", False),
    ],
)
def test_by_what_made_it(source: str, does: bool) -> None:
    script = script_of(IMPORTS + source)
    call = next(each for each in script.find(ast.Call) if ast.unparse(each.func).endswith(".rename"))
    assert isinstance(call.func, ast.Attribute)
    assert is_path(script, call.func.value) is does
    assert writes(script, call) is does


@pytest.mark.parametrize(
    ("source", "does"),
    [
        ("Path('a').replace('b')", True),
        ("Path('a').replace(target='b')", True),
        ("'a'.replace('b', 'c')", False),
        ("frame.replace({1: 2})", False),
    ],
)
def test_texts_and_tables_are_replaced_too(source: str, does: bool) -> None:
    script = script_of(f"{IMPORTS}x = {source}")
    assert writes(script, node_of(script, source)) is does
