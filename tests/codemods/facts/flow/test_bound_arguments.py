"""functools.partial: what it makes of functions and classes is followed, or nothing is known of it."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import followed
from tests.codemods.plain.test_followed import plain, refusals, training, undivided

NET = """\
from functools import partial


def mixed(h, scale=0.0):
    return h - scale * h.mean(0)


class Mixing(nn.Module):
    def __init__(self, size, scale):
        super().__init__()
        self.scale = scale

    def forward(self, h):
        return h * {by}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.then = {then}

    def forward(self, x):
        return self.then(self.first(x))


model = Net()
"""


def of_net(then: str, by: str = "self.scale") -> str:
    """A script that trains a network with a layer that partial makes."""
    return training().replace("model = nn.Linear(4, 3)\n", NET.format(then=then, by=by))


@pytest.mark.parametrize(
    "then",
    [
        "partial(F.leaky_relu, negative_slope=0.2)",
        "partial(nn.LayerNorm, eps=1e-6)(3)",
        "partial(Mixing, scale=0.5)(3)",
        "partial(F.layer_norm, normalized_shape=(3,))",
        "partial(nn.Softmax, dim=1)()",
        "partial(nn.Flatten, start_dim=1)()",
    ],
)
def test_what_leaves_samples_apart_is_divided(then: str) -> None:
    result = plain(of_net(then))
    assert not refusals(result) and not undivided(result)


@pytest.mark.parametrize(
    ("then", "by"),
    [
        ("partial(torch.softmax, dim=0)", ""),
        ("partial(F.normalize, dim=0)", ""),
        ("partial(torch.roll, shifts=1)", ""),
        ("partial(F.glu, dim=0)", ""),
        ("partial(mixed, scale=2)", ""),
        ("partial(partial(mixed, scale=1), scale=2)", ""),
        ("partial(mixed, **{'scale': 2})", ""),
        ("partial(nn.Softmax, dim=0)()", ""),
        ("partial(nn.Softmax, 0)()", ""),
        ("partial(nn.Softmax, dim=1)(dim=0)", ""),
        ("partial(nn.Softmax, **{'dim': 0})()", ""),
        ("partial(Mixing, scale=0.5)(3)", "h.mean(0)"),
    ],
)
def test_what_mixes_samples_is_seen(then: str, by: str) -> None:
    result = plain(of_net(then, by or "self.scale"))
    is_followed = not then.startswith(("partial(torch.", "partial(F.", "partial(nn."))
    assert bool(refusals(result)) is not is_followed
    assert ("differentiable_mean(" in result.code) is is_followed  # the mean of all ranks' samples


@pytest.mark.parametrize(
    "body",
    [
        "partial(torch.mul, h)(h.flip(0))",
        "torch.vmap(partial(mixed, scale=2))(h)",
        "list(map(partial(torch.softmax, dim=0), [h]))[0]",
    ],
)
def test_what_is_called_in_other_ways_is_seen(body: str) -> None:
    source = of_net("nn.Identity()").replace(
        "return self.then(self.first(x))", f"h = self.first(x)\n        return {body}"
    )
    assert refusals(plain(source))


def test_a_hook_that_is_given_some_of_its_arguments_is_no_other_hook() -> None:
    hook = "model = Net()\nmodel.first.register_forward_hook(partial(lambda m, i, o, by: o - o.mean(0) * by, by=2))\n"
    refused = "".join(refusals(plain(of_net("nn.Identity()").replace("model = Net()\n", hook))))
    assert "what a hook does with the batches that a model gets is not followed" in refused


GIVEN = """\
def run(loader, rate=0.1, coupled=False):
    for x, y in loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        if coupled:
            loss = loss + out.std()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


"""


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("", True),
        ("rate=0.2", True),
        ("**{'rate': 0.2}", True),
        ("**dict(rate=0.2)", True),
        ("**json.load(open('settings.json'))", False),
        ("**vars(argparse.ArgumentParser().parse_args())", False),
        ("**{'coupled': False, **json.load(open('settings.json'))}", False),
        ("**{**json.load(open('settings.json')), 'coupled': False}", True),
        ("coupled=False, **json.load(open('settings.json'))", True),
    ],
)
def test_settings_that_only_the_run_knows_are_no_defaults(given: str, known: bool) -> None:
    program = f"import argparse\nimport json\n{GIVEN}run(train_loader, {given})\n"
    joined = {ast.unparse(node) for node in followed(program).found.joined}
    assert ("out" in joined) is not known


def test_so_are_those_that_a_function_hands_on() -> None:
    program = f"import json\n{GIVEN}def start(**settings):\n    run(train_loader, **settings)\n\n\n"
    unknown = followed(program + "start(**json.load(open('settings.json')))\n").found.joined
    known = followed(program + "start(rate=0.2)\n").found.joined
    assert [ast.unparse(node) for node in unknown] == ["out"] and not known


FUNCTIONS = """\
NAMES = {"0": "first", "1": "second"}


def second(first, second):
    return second


def or_none(first, second=None):
    return second


def by_key(**outputs):
    return outputs["second"]


def handed_on(**outputs):
    return second(**outputs)


"""
FILLED = """\
loss = 0.0
        out, filled = model(x), {{}}
        for name, each in zip(NAMES, (out, 2 * out)):
            filled[NAMES[name]] = each
        part = {}({})
        loss = part.pow(2).sum() + F.cross_entropy(out, y)"""


@pytest.mark.parametrize("function", ["second", "or_none", "by_key", "handed_on"])
@pytest.mark.parametrize("given", ["**filled", "first=out, **{'second': out}"])
def test_what_a_function_gets_by_a_mapping_is_not_the_same_on_all_ranks(function: str, given: str) -> None:
    source = training("0.0").replace("loss = 0.0", FILLED.format(function, given))
    source = source.replace("model = nn.Linear(4, 3)\n", FUNCTIONS + "model = nn.Linear(4, 3)\n")
    assert "differentiable_sum(part.pow(2).sum())" in plain(source).code


@pytest.mark.parametrize(
    ("default", "loss"),
    [
        ("'mean'", "F.cross_entropy(out, y, reduction=setting)"),
        ("0.5", "F.cross_entropy(out, y) * setting"),
        ("False", "2 * F.cross_entropy(out, y) if setting else F.cross_entropy(out, y)"),
    ],
)
def test_a_default_that_is_no_none_is_kept_whatever_a_mapping_may_hold(default: str, loss: str) -> None:
    """`model(x, **batch)`, with `return_dict=False` and `reduction="mean"`."""
    step = f"def step(x, y, mask=None, setting={default}):\n    out = model(x * mask)\n    return {loss}\n\n\n"
    call = "batch = {}\n        for name, each in zip(NAMES, (x,)):\n            batch[NAMES[name]] = each\n"
    source = training("0.0").replace("loss = 0.0", f"{call}        loss = step(x, y, **batch)")
    result = plain(source.replace("model = ", f"NAMES = {{'0': 'mask', '1': 'other'}}\n\n\n{step}model = ", 1))
    assert not refusals(result)
    assert "(setting)" not in result.code


@pytest.mark.parametrize("function", ["second", "or_none", "by_key"])
@pytest.mark.parametrize("other", ["{'first': 1.0, 'second': torch.zeros(3)}", "{'first': 1.0}"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_mapping_that_is_one_of_two_dicts_is_either_of_them(function: str, other: str, is_first: bool) -> None:
    """Not the last one, whichever that is."""
    dicts = ["{'first': 1.0, 'second': out}", other]
    given = f"{dicts[not is_first]} if SWITCH else {dicts[is_first]}"
    call = (
        f"out = model(x)\n        part = {function}(**({given}))\n        loss = part.sum() + F.cross_entropy(out, y)"
    )
    source = training("0.0").replace("loss = 0.0", call)
    functions = "import sys\nSWITCH = len(sys.argv) < 9\n" + FUNCTIONS
    source = source.replace("model = nn.Linear(4, 3)\n", functions + "model = nn.Linear(4, 3)\n")
    outcomes = {plain(source).code for _ in range(3)}
    assert "differentiable_sum(part.sum())" in outcomes.pop() and not outcomes


@pytest.mark.parametrize(
    "call",
    [
        "second(**{'second': out}, **{'first': 1.0})",
        "second(**{'first': 1.0}, **{'second': out})",
        "second(**filled, **{})",
        "partial(second, **{'second': out})(**{'first': 1.0})",
        "partial(second, second=1.0)(first=1.0, **filled)",
        "partial(or_none, **filled)()",
        "kept(first=1.0)",
    ],
)
def test_what_is_given_by_several_mappings_is_what_each_of_them_gives(call: str) -> None:
    functions = f"from functools import partial\n{FUNCTIONS}OUT = [None]\n\n\n"
    functions += "def kept(first, **others):\n    return or_none(OUT[0], **others, second=OUT[0])\n\n\n"
    source = training("0.0").replace("loss = 0.0", FILLED.replace("{}({})", "{}").format(call))
    source = source.replace("part =", "OUT[0] = out\n        part =")
    source = source.replace("model = nn.Linear(4, 3)\n", functions + "model = nn.Linear(4, 3)\n")
    assert "differentiable_sum(part.pow(2).sum())" in plain(source).code


def test_named_parameters_are_not_among_the_others() -> None:
    functions = "def tail(other, first=0.0):\n    return first\n\n\n"
    functions += "def kept(first, **others):\n    return tail(1.0, **others)\n\n\n"
    loss = "out = model(x)\n        loss = kept(first=out) + F.cross_entropy(out, y)"
    source = training("0.0").replace("loss = 0.0", loss).replace("model = nn.", f"{functions}model = nn.", 1)
    assert not refusals(plain(source))


@pytest.mark.parametrize(
    "made",
    [
        *("given = {'first': 0.0, 'second': 0.0} | filled", "given = {'first': 0.0, 'second': 0.0, **filled}"),
        "given = {'first': 0.0, 'second': 0.0}\n        given.update(filled)",
        "given = {'first': 0.0}\n        given.setdefault('second', out)",
    ],
)
@pytest.mark.parametrize("part", ["second(**given)", "given['second']"])
def test_entries_are_not_the_same_that_a_filled_dict_may_have_overwritten(made: str, part: str) -> None:
    loss = FILLED.replace("{}({})", part).replace("part =", f"{made}\n        part =")
    loss = loss.replace("{{}}", "dict()").replace("loss = 0.0\n        ", "", 1)
    source = training("0.0").replace("loss = 0.0", loss)
    source = source.replace("model = nn.Linear(4, 3)\n", FUNCTIONS + "model = nn.Linear(4, 3)\n")
    assert "differentiable_sum(part.pow(2).sum())" in plain(source).code or refusals(plain(source))
