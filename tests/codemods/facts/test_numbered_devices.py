"""The number of a GPU in the place of a device."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.numbered_devices import numbered_devices, second_number

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("lines", "numbers"),
    [
        ("device = 0 if torch.cuda.is_available() else 'cpu'\nmodel.to(device)", ["0"]),
        ("device = torch.device(1 if torch.cuda.is_available() else 'cpu')", ["1"]),
        ("device = 0\nx.to(device, non_blocking=True)\ntorch.rand(2, device=device)", ["0"]),
        ("device = 'cpu'\nif torch.cuda.is_available():\n    device = 0\nmodel.to(device)", ["0"]),
        ("device = args.gpu if args.cuda else 'cpu'\nmodel.to(device)", ["args.gpu"]),
        ("def choose():\n    return 0 if args.cuda else 'cpu'\nmodel.to(choose())", ["0"]),
        ("def train(where):\n    model.to(where)\ntrain(0)", ["0"]),
        ("model.to(0)", []),
        ("device = 'cuda'\nmodel.to(device)\ncount = 0", []),
        ("device = torch.device(0)\nmodel.to(device)", []),
        ("count = 1 if args.cuda else 2\nprint(count)", []),
        ("number = 0\nopen_camera(device=number)\nx.to('cpu')", []),
        ("device = torch.device(0 if cuda else 'cpu')\nmodel.to(device)\nx = (a == b).int().sum()", ["0"]),
    ],
)
def test_numbers_that_are_devices(lines: str, numbers: list[str]) -> None:
    found = numbered_devices(script_of(f"import torch\n{lines}"))
    assert [ast.unparse(each) for each in found] == numbers and not any(found.values())


@pytest.mark.parametrize(
    "use",
    [
        "if device >= 0:\n    pass",
        "names[device]",
        "device + 1",
        "device == -1",
        "print('GPU %d' % device)",
        "print('%d of %s' % (device, name))",
        "print(f'{device:d}')",
        "print('{:d}'.format(device))",
        "range(device)",
    ],
)
def test_what_has_to_stay_a_number(use: str) -> None:
    (used,) = numbered_devices(script_of(f"device = 0\nmodel.to(device)\n{use}")).values()
    assert used is not None and ast.unparse(used) == "device"


@pytest.mark.parametrize(
    "use", ["device == 'cpu'", "print('on %s' % device)", "f'cuda:{device}'", "show(device, (y == z).int().sum())"]
)
def test_what_takes_a_name_too(use: str) -> None:
    assert [*numbered_devices(script_of(f"device = 0\nmodel.to(device)\n{use}")).values()] == [None]


def test_two_gpus() -> None:
    script = script_of("first, other = 0, 1\na.to(first)\nb.to(other)")
    second = second_number(script)
    assert second is not None and len({0, 1, second.value}) == 2  # type: ignore[attr-defined]
    assert second_number(script_of("first, other = 0, 0\na.to(first)\nb.to(other)")) is None
