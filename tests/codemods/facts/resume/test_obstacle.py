"""Why a run could not go on, with its place."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.resume.obstacle import CannotResume, Obstacle

from tests.codemods.checks import node_of, script_of

SCRIPT = script_of("x = 1\ny = f(x)")


@pytest.mark.parametrize(("node", "line"), [(node_of(SCRIPT, "f(x)"), 2), (SCRIPT.tree, 1), (ast.Load(), 1)])
def test_an_obstacle_has_the_line_of_its_node(node: ast.AST, line: int) -> None:
    with pytest.raises(CannotResume) as raised:
        raise CannotResume(SCRIPT, node, "f is not known", "leave it out")
    assert raised.value.obstacle == Obstacle(SCRIPT, line, "f is not known", "leave it out")
