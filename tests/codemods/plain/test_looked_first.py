"""Files that are written where they were not found: no rank writes before all have looked."""

from __future__ import annotations

import re

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

HEAD = """\
import os
def prepare():
    torch.save({}, "a.pt")
def build():
    prepare()
def ready():
    return os.path.exists("a.pt")
def there():
    if not os.path.isdir("m"):
        return False
    return all(os.path.exists(each) for each in ("m/a.pt", "a.pt"))
def cached():
    if not ready():
        return None
    return torch.load("a.pt")
"""
READ = 'model.load_state_dict(torch.load("a.pt"))\n'


@pytest.mark.parametrize(
    ("lines", "waits"),
    [
        ("if not ready():\n    WAIT\n    prepare()", 1),
        ("if not there():\n    WAIT\n    build()", 1),
        ("if ready():\n    print('there')\nelse:\n    WAIT\n    prepare()", 1),
        ("if ready():\n    print('there')\nelif model:\n    WAIT\n    prepare()", 1),
        ("found = ready()\nif not found:\n    WAIT\n    prepare()", 1),
        ("found = os.path.exists('a.pt')\nif not found:\n    WAIT\n    prepare()", 1),
        ("found = True\nif not ready():\n    found = False\nif not found:\n    WAIT\n    prepare()", 1),
        ("state = cached()\nif state is None:\n    WAIT\n    prepare()", 1),
        ("if not all(map(os.path.exists, ['a.pt'])):\n    WAIT\n    prepare()", 1),
        ("if not os.path.exists('a.pt'):\n    WAIT\n    build()", 1),
        ("for name in ('a', 'b'):\n    if ready():\n        continue\n    WAIT\n    prepare()", 1),
        ("class Data:\n    def __del__(self):\n        if not ready():\n            prepare()\nData()", 0),
        ("def once(found):\n    if not found:\n        WAIT\n        prepare()\nonce(os.path.exists('a.pt'))", 1),
        ("def once():\n    if ready():\n        return\n    WAIT\n    prepare()\nonce()", 1),
        ("def once():\n    if os.path.exists('a.pt'):\n        return\n    WAIT\n    prepare()\nonce()", 1),
        ("class Data:\n    def __init__(self):\n        if not self.is_there():\n            WAIT\n"
         "            prepare()\n    def is_there(self):\n        return ready()\nData()", 1),
        ("class Data:\n    @property\n    def made(self):\n        return ready()\n    def __init__(self):\n"
         "        if not self.made:\n            WAIT\n            prepare()\nData()", 1),
        # what decides nothing that is written, or nothing that was looked for
        ("if not ready():\n    print('none')", 0),
        ("if not ready():\n    os.makedirs('a', exist_ok=True)", 0),
        ("if not ready():\n    with open('a.txt', 'w') as file:\n        file.write('1')", 0),
        ("if len(loader) > 3:\n    prepare()", 0),
        ("try:\n    prepare()\nexcept KeyboardInterrupt:\n    prepare()", 0),
        ("try:\n    torch.load('a.pt')\nexcept OSError:\n    prepare()", 0),  # one rank alone may come there
        ("try:\n    torch.load('a.pt')\nexcept KeyError:\n    prepare()", 0),
        ("for x, y in loader:\n    if not ready():\n        print(1)", 0),
        ("if not os.path.exists('a.pt'):\n    torch.save({}, 'a.pt')", 0),  # rank 0 looks for all
    ],
)  # fmt: skip
def test_no_rank_writes_before_all_have_looked(lines: str, waits: int) -> None:
    after = HEAD + re.sub(r" *WAIT\n", "", lines) + '\nmodel.load_state_dict(torch.load("a.pt"))\n'
    result = plain(training(after=after))
    assert not refusals(result)
    assert len(re.findall(r"dist\.barrier\(\)\n *(?:prepare|build)\(\)", result.code)) == waits
    looked = [change for change in result.changes if "have looked" in change.message]
    assert len(looked) == waits


def test_a_condition_in_an_expression_is_that_of_rank_0() -> None:
    after = HEAD + 'a = cached() if ready() else build()\nb = 1 if not os.path.exists("a.pt") else prepare()\n'
    code = plain(training(after=after + 'model.load_state_dict(torch.load("a.pt"))\n')).code
    assert "a = cached() if from_rank_0(bool(ready())) else build()" in code
    assert 'b = 1 if from_rank_0(not os.path.exists("a.pt")) else prepare()' in code


def test_ranks_do_not_wait_where_they_come_unequally_often() -> None:
    after = "\nwith torch.no_grad():\n    for x, y in DataLoader(train_set, batch_size=8):\n        model(x)\n"
    result = plain(training(after=HEAD + after + "        if not ready():\n            prepare()\n"))
    assert not [change for change in result.changes if "have looked" in change.message]
