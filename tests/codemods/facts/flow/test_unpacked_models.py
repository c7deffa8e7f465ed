"""What a function takes out of a list that it is given, and what a call gives for that."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.unpacked_models import given_for

from tests.codemods.checks import script_of

PROGRAM = """\
def fit(models, loader):
    {takes}
    return encoder, decoder


fit({gives}, 3)
"""


@pytest.mark.parametrize(
    ("takes", "gives", "given"),
    [
        ("encoder, decoder = models", "[cnn, rnn]", "rnn"),
        ("(encoder, decoder) = models", "(cnn, rnn)", "rnn"),
        ("encoder, decoder = models", "*both", ""),
        ("encoder, decoder = models", "[cnn, *others]", ""),
        ("encoder, decoder = models", "both", ""),
        ("encoder, *decoder = models", "[cnn, rnn]", ""),
        ("encoder, decoder = models; print(models)", "[cnn, rnn]", ""),
        ("encoder, decoder = loader, models", "[cnn, rnn]", ""),
        ("decoder = encoder = models", "[cnn, rnn]", ""),
    ],
)
def test_what_a_call_gives_for_a_name(takes: str, gives: str, given: str) -> None:
    script = script_of(PROGRAM.format(takes=takes, gives=gives))
    function = next(iter(script.find(ast.FunctionDef)))
    call = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "fit")
    found = given_for(script, function, "decoder", call)
    assert (ast.unparse(found) if found is not None else "") == given


def test_parameters_are_given_as_ever() -> None:
    script = script_of(PROGRAM.format(takes="encoder, decoder = models", gives="[cnn, rnn]"))
    found = given_for(script, next(iter(script.find(ast.FunctionDef))), "loader", next(iter(script.find(ast.Call))))
    assert found is not None
    assert ast.unparse(found) == "3"
