"""Classes of a program that are derived from nn.DataParallel."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.own_data_parallel import called_as, mentions, own_classes

from tests.codemods.checks import script_of

OWN = """\
from torch import nn


class Other:
    pass


class Own(nn.DataParallel):
    def __init__(self, net):
        super(Own, self).__init__(net)


class Inner(Own):
    pass


{}
"""


@pytest.mark.parametrize(
    ("code", "lines", "calls"),
    [
        ("Own(net)", 1, 1),
        ("Inner(net)", 1, 1),
        ("Inner.of(net)", 1, 1),
        ("wrap = Own if several else Inner", 2, 0),
        ("wrap(net, Own)", 1, 0),
        ("Other(net)", 0, 0),
        ("isinstance(net, (Own, list))", 0, 0),
        ("type(net) is Own", 0, 0),
        ("def of(net: Own) -> Inner: return net", 0, 0),
        ("def of(net, kind=Own): return kind(net)", 1, 0),
        ("net: Own = made", 0, 0),
    ],
)
def test_where_a_class_may_be_made(code: str, lines: int, calls: int) -> None:
    script = script_of(OWN.format(code))
    own = own_classes([script])
    assert {each.name for each in own} == {"Own", "Inner"}
    found = [*mentions(script, own)]
    assert len(found) == lines and sum(called_as(script, each) is not None for each in found) == calls


def test_another_class_of_the_same_name_is_none() -> None:
    scripts = [script_of(OWN.format("")), script_of("class Own:\n    pass\n\n\nOwn(1)\n")]
    own = own_classes(scripts)
    assert not [*mentions(scripts[1], own)] and len([*scripts[0].find(ast.ClassDef)]) == len(own) + 1
