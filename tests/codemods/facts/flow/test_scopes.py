"""Whose variable a name is."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.flow.scopes import binder_of, class_around, parameters_of

from tests.codemods.checks import node_of, script_of

SOURCE = """\
model = 1


def reads():
    return model + 1


def writes():
    model = 2
    return model + 2


def shares():
    global model
    model = 3
    return model + 3


def takes(model, *models, rate=0.1, **options):
    def inner():
        return model + 4


class Trainer:
    def fit(self):
        self.model = 5
"""


def test_a_name_belongs_to_the_function_that_binds_it() -> None:
    script = script_of(SOURCE)
    names = [node_of(script, f"model + {place}").left for place in (1, 2, 3, 4)]
    found = [getattr(binder_of(script, name), "name", "the file") for name in names]
    assert found == ["the file", "writes", "the file", "takes"]


def test_what_a_function_takes() -> None:
    function = next(each for each in script_of(SOURCE).find(ast.FunctionDef) if each.name == "takes")
    assert parameters_of(function) == {"model", "rate"}


def test_the_class_around() -> None:
    script = script_of(SOURCE)
    around = class_around(script, node_of(script, "self.model"))
    assert isinstance(around, ast.ClassDef) and around.name == "Trainer"
    assert class_around(script, node_of(script, "model + 1")) is None
