"""Functions that only show what they are given get the numbers of all ranks in their calls."""

import pytest
from ddpify_codemods import Result

from tests.codemods.plain.test_followed import plain, refusals, training

MODEL = "model = nn.Linear(4, 3)\n"
MEAN = "mean_over_ranks(loss.item())"
IN_THE_CALL = [
    ("def log(*values):\n    print(*values)\n", "log(3, {})"),
    ("def log(*values):\n    print(' '.join(map(str, values)))\n", "log('loss', {})"),
    ("def log(*values):\n    text = ' '.join(str(value) for value in values)\n    print(text)\n", "log('loss', {})"),
    ("def log(*values):\n    for value in values:\n        print(value, end=' ')\n", "log('loss', {})"),
    ("def log(*values):\n    for place, value in enumerate(values):\n        print(place, value)\n", "log('loss', {})"),
    ("def log(**values):\n    print(values)\n", "log(name='loss', loss={})"),
    ("def log(text, *values):\n    print(text % values)\n", "log('%f', {})"),
    ("def log(text, *values):\n    print(text.format(*values))\n", "log('{{}}', {})"),
    ("def log(name, value):\n    print(name, value)\n\n\nlog('device', 'cpu')\n", "log('loss', {})"),
    ("def log(name, value):\n    print(name, value)\n\n\nlog('device', None)\n", "log(value={}, name='loss')"),
    ("def log(value, end=''):\n    print(value, end=end)\n\n\nlog(f'{1}')\n", "log({})"),
    ("class Log:\n    def log(self, value):\n        print(value)\n\n\nlog = Log()\nlog.log('begin')\n", "log.log({})"),
]


def shown(function: str, call: str) -> Result:
    """What becomes of a script with a function, that is called in its training loop."""
    return plain(training().replace(MODEL, f"\n\n{function}\n\n{MODEL}") + f"        {call}\n")


@pytest.mark.parametrize(("function", "call"), IN_THE_CALL)
def test_numbers_are_brought_together_in_the_call(function: str, call: str) -> None:
    result = shown(function, call.format("loss.item()"))
    assert not refusals(result)
    assert call.format(MEAN) in result.code.replace('"', "'")
    assert function.replace('"', "'") in result.code.replace('"', "'")


def test_they_are_brought_together_in_a_function_that_is_given_numbers_alone() -> None:
    function = "def log(name, value):\n    print(name, value)\n"
    result = shown(function, "log('loss', loss.item())")
    assert not refusals(result)
    assert "print(name, mean_over_ranks(value))" in result.code and "log('loss', loss.item())" in result.code


@pytest.mark.parametrize(
    "function",
    [
        "KEPT = []\n\n\ndef log(*values):\n    KEPT.append(values)\n    print(values)\n",
        "def log(*values):\n    values = values[1:]\n    print(*values)\n",
    ],
)
def test_what_a_function_does_more_than_show_is_not(function: str) -> None:
    result = shown(function, "log('loss', loss.item())")
    assert MEAN not in result.code


def test_a_function_that_keeps_texts_and_numbers_is_refused() -> None:
    function = "KEPT = {}\n\n\ndef log(name, value):\n    KEPT[name] = value\n    print(value)\n\n\n"
    elsewhere = "class Other:\n    def log(self, name, value):\n        print(value)\n\n\nOther().log('a', 'b')\n"
    assert not refusals(shown(function + elsewhere, "log('loss', loss.item())"))
    result = shown(f"{function}log('device', 'cpu')\n", "log('loss', loss.item())")
    assert any("a text in another" in reason for reason in refusals(result))


def test_what_a_text_shows_is_that_of_all_ranks() -> None:
    function = "def log(text, value):\n    print(text % (value,))\n"
    result = shown(function, "log('%f', loss.item())")
    assert not refusals(result)
    assert "print(text % (mean_over_ranks(value),))" in result.code
    pair = shown("", "pair = loss.item(), 2 * loss.item()\n        print('%f %f' % pair)")
    assert "% mean_over_ranks(pair))" in pair.code and "return tuple(total.tolist())" in pair.code


SCALED = """
class Scaled(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, **others):
        return 2 * self.layer(x, **others)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, context=None):
        return self.layer(x if context is None else context)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ModuleList([Scaled(Attention()), Scaled(nn.Linear(4, 4))]) for _ in range(2)])
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        for attention, forward in self.layers:
            x = forward(attention(x, context=x))
        return self.last(x)


model = Net()
"""


def test_layers_of_several_kinds_at_one_call_are_no_reason_to_end_with_an_error() -> None:
    """The loop over them gives any to each name; one of them takes no `context`."""
    assert not refusals(plain(training().replace(MODEL, SCALED)))
