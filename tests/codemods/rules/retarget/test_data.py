"""DDP206: inputs, labels and loaders."""

from __future__ import annotations

import pytest

from .eager import check_noop, check_transformed

_LOADER = "from torch.utils.data import DataLoader\nloader = DataLoader([1], 1)"


@pytest.mark.parametrize(
    "lines",
    [
        "x = torch.rand(8, 4)",
        "for step in range(3):\n    print(step)",
        "for x in loader:\n    print(x)",
        "x = torch.rand(8, 4, device=rank_device)\nmodel(x)",
    ],
)
def test_nothing_to_do(lines: str) -> None:
    check_noop(lines, _LOADER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model(torch.rand(8, 4))", "model(torch.rand(8, 4).to(torch_xla.device()))"),
        ("x = torch.rand(8, 4)\nmodel(x)", "x = torch.rand(8, 4).to(torch_xla.device())\nmodel(x)"),
        ("model.module(torch.rand(8, 4))", "model.module(torch.rand(8, 4).to(torch_xla.device()))"),
        (
            "x = torch.rand(8, 4)\nx = x.cuda()\nmodel(x)",
            "x = torch.rand(8, 4)\nx = x.to(torch_xla.device())\nmodel(x)",
        ),
        (
            "x = torch.rand(8, 4).cuda()\ny = model(x)\nx = x.cpu()\nprint(x.numpy())",  # after it was needed there
            "x = torch.rand(8, 4).to(torch_xla.device())\ny = model(x)\nx = x.cpu()\nprint(x.numpy())",
        ),
        (
            "for x in loader:\n    x = x.cuda()\n    model(x)\n    x = x.cpu()",
            "for x in loader:\n    x = x.to(torch_xla.device())\n    model(x)\n    x = x.cpu()\n    torch_xla.sync()",
        ),
        (
            "x = torch.rand(8, 4).cuda()\nfor step in range(3):\n    model(x)\n    x = x.cpu()",
            "x = torch.rand(8, 4).to(torch_xla.device())\nfor step in range(3):\n    model(x)\n"
            "    x = x.to(torch_xla.device())",
        ),
        ("x = torch.rand(8, 4).cpu()\nmodel(x)", "x = torch.rand(8, 4).to(torch_xla.device())\nmodel(x)"),
        ("net.cpu()\nprint(net.weight.numpy())", "net.cpu()\nprint(net.weight.numpy())"),
        ("n = torch.tensor(1)\ndist.all_reduce(n)", "n = torch.tensor(1).to(torch_xla.device())\ndist.all_reduce(n)"),
        ("for x in loader:\n    model(x)", "for x in pl.MpDeviceLoader(loader, torch_xla.device()):\n    model(x)"),
        (
            "for i, (x, y) in enumerate(loader):\n    loss(model(x), y).backward()",
            "for i, (x, y) in enumerate(pl.MpDeviceLoader(loader, torch_xla.device())):\n"
            "    loss(model(x), y).backward()",
        ),
        (
            "for x in loader:\n    x = x.to(rank)\n    model(x)",
            "for x in loader:\n    x = x.to(torch_xla.device())\n    model(x)\n    torch_xla.sync()",
        ),
    ],
)
def test_what_changes(before: str, after: str) -> None:
    check_transformed(before, after, _LOADER)


def test_the_cpu_by_name() -> None:
    check_transformed(
        "place = torch.device('cpu')\nm = nn.Linear(4, 1).to(place)\nm = DDP(m)\nm(torch.rand(2, 4).to(place))",
        "place = torch_xla.device()\nm = nn.Linear(4, 1).to(place)\nm = DDP(m, gradient_as_bucket_view=True)\n"
        "m(torch.rand(2, 4).to(place))",
    )
