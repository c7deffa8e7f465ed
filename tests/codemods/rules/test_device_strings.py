from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed, findings, imports_of


@pytest.mark.parametrize(
    "lines",
    [
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
        'device = "cuda"',
        'device = torch.device("cpu")',
        'name = "cuda:x"',
        'print("cuda:0 is busy")',
        'text = f"on cuda:{3} now"',
        'x = torch.ones(2).to("cuda", non_blocking=True)',
        "x = torch.ones(2).to(torch.float16)",
    ],
)
def test_cuda_keeps_unnumbered_devices(lines: str) -> None:
    check_noop(lines)


@pytest.mark.parametrize(
    "lines",
    [
        'device = torch.device("cpu")',
        'enabled = torch.device("cpu").type == "cuda"',
        'kinds = ["cuda", "cpu"]',
        'with torch.autocast("cuda"):\n    pass',
        'table = {"cuda": 1}',
        'x = torch.load("a.pt", map_location="cpu")',
        "if torch.cuda.is_available():\n    torch.cuda.manual_seed(1)",
    ],
)
def test_cpu_keeps_what_needs_no_gpu(lines: str) -> None:
    check_noop(lines, "cpu")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")',
         'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'),
        ("device = 'cuda:0'", "device = 'cuda'"),
        ('device = torch.device(type="cuda", index=0)', 'device = torch.device("cuda")'),
        ('gpu = 0\ndevice = f"cuda:{gpu}"', 'gpu = 0\ndevice = "cuda"'),
        ('gpu = 0\ndevice = "cuda:" + str(gpu)', 'gpu = 0\ndevice = "cuda"'),
        ('gpu = 0\ndevice = "cuda:{}".format(gpu)', 'gpu = 0\ndevice = "cuda"'),
        ("gpu = 0\ndevice = 'cuda:%d' % gpu", "gpu = 0\ndevice = 'cuda'"),
        ('device = torch.device("cuda", 0)', 'device = torch.device("cuda")'),
        ("device = torch.device(0)", 'device = torch.device("cuda")'),
        ('x = torch.load("a.pt", map_location="cuda:0")', 'x = torch.load("a.pt", map_location="cuda")'),
    ],
)  # fmt: skip
def test_cuda_drops_the_number(before: str, after: str) -> None:
    check_transformed(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('device = torch.device("cuda:0")', 'device = torch.device("cpu")'),
        ('device = torch.device("cuda", 1)', 'device = torch.device("cpu")'),
        ("device = torch.device(0)", 'device = torch.device("cpu")'),
        ('x = torch.ones(2, device="cuda")', 'x = torch.ones(2, device="cpu")'),
        ("x = torch.ones(2).to('cuda:1')", "x = torch.ones(2).to('cpu')"),
        ('settings = {"device": "cuda", "mode": "cuda"}', 'settings = {"device": "cpu", "mode": "cuda"}'),
        ('def run(device="cuda"):\n    pass', 'def run(device="cpu"):\n    pass'),
        ('x = torch.load("a.pt", map_location="cuda:0")', 'x = torch.load("a.pt", map_location="cpu")'),
        ('x = torch.load("a.pt", "cuda:0")', 'x = torch.load("a.pt", "cpu")'),
        ('gpu = 0\ndevice = torch.device(f"cuda:{gpu}" if gpu >= 0 else "cpu")',
         'gpu = 0\ndevice = torch.device("cpu")'),
    ],
)  # fmt: skip
def test_cpu_names_the_cpu(before: str, after: str) -> None:
    check_transformed(before, after, "cpu")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('device = torch.device("cuda:0")', "device = torch_xla.device()"),
        ('device = torch.device("cuda" if torch.cuda.is_available() else "cpu")', "device = torch_xla.device()"),
        ('device = "cuda" if torch.cuda.is_available() else "cpu"', "device = torch_xla.device()"),
        ('x = torch.ones(2, device="cuda")', "x = torch.ones(2, device=torch_xla.device())"),
        ('x = torch.load("a.pt", map_location="cuda:0")', 'x = torch.load("a.pt", map_location="cpu")'),
    ],
)
def test_xla_asks_for_its_device(before: str, after: str) -> None:
    check_transformed(before, after, "xla")
    assert "import torch_xla\n" in imports_of(before, "xla")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('device = "cuda"\nwith torch.autocast(device_type=device):\n    pass',
         'device = "xla"\nwith torch.autocast(device_type=device):\n    pass'),
        ('gpu = 0\ndevice = torch.device("cuda" if gpu >= 0 else "cpu")',
         'gpu = 0\ndevice = torch.device("xla" if gpu >= 0 else "cpu")'),
        ('def run(device="cuda"):\n    pass', 'def run(device="xla"):\n    pass'),
    ],
)  # fmt: skip
def test_xla_keeps_a_string_where_one_is_needed(before: str, after: str) -> None:
    check_transformed(before, after, "xla")


def test_two_numbers_are_refused_for_gpus() -> None:
    found = findings('first, second = nn.Linear(1, 1).to("cuda:0"), nn.Linear(1, 1).to("cuda:1")')
    assert [(each.rule, each.severity) for each in found] == [("DDP103", "refused")]


def test_two_numbers_are_fine_without_gpus() -> None:
    lines = 'first, second = nn.Linear(1, 1).to("cuda:0"), nn.Linear(1, 1).to("cuda:1")'
    check_transformed(lines, lines.replace("cuda:0", "cpu").replace("cuda:1", "cpu"), "cpu")
