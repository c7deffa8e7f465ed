"""What calls give to the parameters of functions."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import followed, reasons

SEVERAL = """\
def show(a, b, scale=1.0):
    print({shown})
for epoch in range(2):
    for x, y in train_loader:
        outputs = []
        for scale in (1, 2):
            outputs.append(model(x) * scale)
        F.cross_entropy(outputs[0], y).backward()
        optimizer.step()
        optimizer.zero_grad()
        show({given})
"""


@pytest.mark.parametrize("given", ["*outputs", "*outputs, 2.0", "outputs[0], *outputs", "*outputs, outputs[0]"])
def test_each_parameter_may_get_an_entry_of_a_list_of_which_it_is_not_known_how_long_it_is(given: str) -> None:
    (shown,) = followed(SEVERAL.format(shown="b.mean().item()", given=given)).found.reductions
    assert ast.unparse(shown) == "b.mean().item()"


def test_a_list_with_an_entry_for_each_sample_is_no_list_of_tensors() -> None:
    assert reasons(SEVERAL.format(shown="b.mean().item()", given="*[float(each.sum()) for each in outputs[0]]"))


def test_what_zip_makes_of_a_list_is_not_one_of_its_entries() -> None:
    columns = "means, _ = zip(*[(each.mean().item(), 1) for each in outputs])\n        print(sum(means))\n"
    found = followed(SEVERAL.format(shown="b", given="0, 1.0").replace("show(0, 1.0)\n", columns)).found
    assert [ast.unparse(each) for each in found.reductions] == ["[(each.mean().item(), 1) for each in outputs]"]
