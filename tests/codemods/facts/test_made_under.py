"""The condition under which alone a variable has a value."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest
from ddpify_codemods.facts.made_under import made_under

from tests.codemods.checks import script_of


def condition(before: str, code: str = "mask", at: str = "end = 1") -> str:
    script = script_of(f"{before}\nend = 1\n")
    statement = next(each for each in script.find(ast.stmt) if ast.unparse(each) == at)
    return made_under(script, code, statement)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("if args.mask:\n    mask = Net()", "args.mask"),
        ("if args.mask:\n    mask = Net()\nif args.mask:\n    mask = mask.cuda()", "args.mask"),
        (
            "mask = None\nif 'mask' in args.kinds and not args.plain:\n    mask = Net()",
            "'mask' in args.kinds and (not args.plain)",
        ),
        ("if a:\n    pass\nelse:\n    mask = Net()", "not a"),
        ("if a:\n    mask = Net()\nelif b:\n    mask = Other()", "a or b"),
        ("if a:\n    pass\nelif b:\n    mask = Net()", "not a and b"),
        ("if a:\n    mask = Net()\nif b:\n    mask = Other()", "a or b"),
        ("if not a:\n    pass\nelse:\n    mask = Net()", "a"),
        ("if a or b:\n    pass\nelse:\n    mask = Net()", "not (a or b)"),
        ("if kind == 'a':\n    pass\nelif kind == 'b':\n    mask = Net()", "kind == 'b'"),
        ("if kind == 'a':\n    pass\nelif other == 'b':\n    mask = Net()", "not kind == 'a' and other == 'b'"),
        ("mask: Net\nif a:\n    mask = Net()", "a"),
    ],
)
def test_the_condition(before: str, expected: str) -> None:
    assert condition(before) == expected


@pytest.mark.parametrize(
    "before",
    [
        "mask = Net()",
        "mask = Net()\nif a:\n    mask = Other()",
        "if a:\n    mask = Net()\nelse:\n    mask = Other()",
        "for each in names:\n    mask = Net()",
        "with here:\n    if a:\n        mask = Net()",
        "if a:\n    if b:\n        mask = Net()",
        "if asks():\n    mask = Net()",
        "if a:\n    mask = Net()\n    a = False",
        "if args.mask:\n    mask = Net()\nargs.mask = False",
        "if a:\n    mask = Net()\nelif b:\n    pass\nelse:\n    mask = Other()",
        "other = 1",
        "from extra import mask\nif a:\n    mask = Net()",
        "def mask():\n    pass\nif a:\n    mask = Net()",
        "if 'a' in kinds:\n    mask = Net()\nkinds.remove('a')",
        "if a:\n    mask = Net()\nif not a:\n    mask = Other()",
    ],
)
def test_where_it_has_a_value_in_any_case_or_nothing_says(before: str) -> None:
    assert condition(before) == ""


def test_under_the_condition_itself() -> None:
    made = "if a:\n    mask = Net()\n"
    assert condition(f"{made}if a:\n    given = 1", at="given = 1") == ""
    assert condition(f"{made}if b:\n    given = 1", at="given = 1") == "a"
    assert condition(f"{made}if a:\n    pass\nelse:\n    given = 1", at="given = 1") == "a"


MADE = "if opt.mask:\n    {} = Net()\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("nets = {}\n", "opt.mask"),
        ("nets = dict()\nfor name in nets:\n    print(nets[name], nets.items())\n", "opt.mask"),
        ("nets = {'net': Net()}\n", "opt.mask"),
        ("nets = {'mask': Net()}\n", ""),
        ("nets = {**others}\n", ""),
        ("nets = {}\nnets.update(mask=Net())\n", ""),
        ("nets = {}\nfill(nets)\n", ""),
        ("nets = nn.ModuleDict()\n", ""),
        ("", ""),
    ],
)
def test_entries_of_what_begins_empty(before: str, expected: str) -> None:
    assert condition(before + MADE.format("nets['mask']"), "nets['mask']") == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("class Trainer:\n", "opt.mask"),
        ("class Trainer:\n    def more(self):\n        self.mask = None\n", "opt.mask"),
        ("class Trainer:\n    def more(self):\n        self.mask = Net()\n", ""),
        ("class Trainer:\n    mask = Net()\n", ""),
        ("class Trainer(Base):\n", ""),
        ("class Trainer:\n    def more(self):\n        setattr(self, 'mask', Net())\n", ""),
    ],
)
def test_attributes(head: str, expected: str) -> None:
    make = "    def make(self):\n" + indent(MADE.format("self.mask") + "given = 1", "        ")
    assert condition(head + make, "self.mask", "given = 1") == expected


def test_an_attribute_of_another_object() -> None:
    assert condition("model = Body()\n" + MADE.format("model.fc"), "model.fc") == ""


def test_what_a_caller_or_another_function_gives() -> None:
    inside = indent("if a:\n    mask = Net()\ngiven = 1", "    ")
    assert condition(f"def make(mask):\n{inside}", at="given = 1") == ""
    assert condition(f"def make():\n    global mask\n{inside}", at="given = 1") == ""
    assert condition(f"mask = Net()\ndef make():\n{inside}", at="given = 1") == "a"


def test_what_gets_a_value_later() -> None:
    assert condition("if a:\n    mask = Net()\ngiven = 1\nmask = Other()", at="given = 1") == ""
