"""docs/hazards.md: every hazard is decided, and what it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from ddpify_codemods import RULES

from tests.e2e import fixtures

ROOT = Path(__file__).parents[1]
TABLE = (ROOT / "docs" / "hazards.md").read_text(encoding="utf-8")
LIMITS = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
KNOWN = {"D": 20, "L": 22, "M": 19, "S": 4, "E": 9, "I": 11, "P": 14, "X": 10}
IDS = [f"{kind}{number}" for kind, count in KNOWN.items() for number in range(1, count + 1)]
_CELLS = ([cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE.splitlines())
ROWS = {cells[0]: cells for cells in _CELLS if len(cells) == 5}


def test_every_hazard_has_one_row() -> None:
    found = re.findall(r"^\| ([A-Z]\d+) \|", TABLE, re.MULTILINE)
    assert found == IDS


@pytest.mark.parametrize("hazard", IDS)
def test_a_hazard_is_decided_and_shown(hazard: str) -> None:
    _, _, decided, by, shown = ROWS[hazard]
    assert decided in ("exact", "refused", "caught", "limit")
    assert by
    if decided == "limit":
        assert "[limits](limits.md)" in shown
    else:
        assert _tests(shown) or _fixtures(shown)
    if "(limits.md)" in shown:
        assert re.search(rf"\b{hazard}\b", LIMITS), f"{hazard} is not in limits.md"
    if decided == "refused":
        assert re.search(r"DDP3|DDP10|the command", by)


def test_what_the_page_names_is_there() -> None:
    rules = {rule.id for rule in RULES}
    assert set(re.findall(r"DDP\d{3}", TABLE)) <= rules
    assert set(_fixtures(TABLE)) <= set(fixtures.names())
    for path, name, parameter in _tests(TABLE):
        defined, text = _defined(path)
        assert name in defined, f"{path}::{name}"
        assert not parameter or _is_parameter(parameter, defined, text), f"{path}::{name}[{parameter}]"


def test_every_fixture_names_hazards() -> None:
    for name in fixtures.names():
        named = fixtures.load(name).hazards
        assert named and set(named) <= {*IDS, "R"}, name


def test_fixtures_train_with_sgd() -> None:
    """Adam divides a wrong scale away (L9)."""
    adaptive = re.compile(r"optim\.(Adam|AdamW|RMSprop|Adagrad|Adadelta|NAdam|RAdam)\(|= (Adam|AdamW|RMSprop)\(")
    trained = [name for name in fixtures.names() if not fixtures.load(name).refused]
    found = [
        name for name in trained for text in fixtures.program(fixtures.load(name)).values() if adaptive.search(text)
    ]
    assert found == []


def _fixtures(text: str) -> list[str]:
    return re.findall(r"\]\(\.\./fixtures/(\w+)\)", text)


def _tests(text: str) -> list[tuple[str, str, str]]:
    """(file, function, parameter or "") of every test that a text names."""
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)(?:\[(\w+)\])?`", text)


def _is_parameter(name: str, defined: frozenset[str], text: str) -> bool:
    return name in defined or f'"{name}"' in text


@cache
def _defined(path: str) -> tuple[frozenset[str], str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return frozenset(node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)), text
