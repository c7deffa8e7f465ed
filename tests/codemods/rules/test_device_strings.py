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
        ('device = torch.device(0 if torch.cuda.is_available() else "cpu")',
         'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'),
        ('device = 0 if torch.cuda.is_available() else "cpu"\nx = torch.ones(2).to(device)',
         'device = "cuda" if torch.cuda.is_available() else "cpu"\nx = torch.ones(2).to(device)'),
        ("device = 0\nx = torch.ones(2).to(device, non_blocking=True)",
         'device = "cuda"\nx = torch.ones(2).to(device, non_blocking=True)'),
        ("x = torch.ones(2).to(0, non_blocking=True)", 'x = torch.ones(2).to("cuda", non_blocking=True)'),
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
        ("device = 0\nx = torch.ones(2).to(device)", 'device = "cpu"\nx = torch.ones(2).to(device)'),
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
        ('device = torch.device(0 if torch.cuda.is_available() else "cpu")', "device = torch_xla.device()"),
        ('device = 0 if torch.cuda.is_available() else "cpu"\nx = torch.ones(2).to(device)',
         "device = torch_xla.device()\nx = torch.ones(2).to(device)"),
        ('x = torch.ones(2, device="cuda")', "x = torch.ones(2, device=torch_xla.device())"),
        ('x = torch.load("a.pt", map_location="cuda:0")', 'x = torch.load("a.pt", map_location="cpu")'),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(
    "lines",
    [
        "first, second = 0, 1\na, b = nn.Linear(1, 1).to(first), nn.Linear(1, 1).to(second)",
        "device = 0\nx = torch.ones(2).to(device if device >= 0 else 'cpu')",
    ],
)
def test_names_of_numbers_that_are_more_than_one_device_are_refused(lines: str) -> None:
    assert [(each.rule, each.severity) for each in findings(lines)] == [("DDP103", "refused")]


def test_two_numbers_are_fine_without_gpus() -> None:
    lines = 'first, second = nn.Linear(1, 1).to("cuda:0"), nn.Linear(1, 1).to("cuda:1")'
    check_transformed(lines, lines.replace("cuda:0", "cpu").replace("cuda:1", "cpu"), "cpu")


SETTINGS = """\
import argparse, os, sys, yaml
parser = argparse.ArgumentParser()
parser.add_argument("--device")
args = parser.parse_args()
config = yaml.safe_load("a.yaml")
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("device = torch.device(args.device)", "device = torch.device(torch.device(args.device).type)"),
        ("args.device = torch.device(args.device)", "args.device = torch.device(torch.device(args.device).type)"),
        ('device = torch.device(config["device"])', 'device = torch.device(torch.device(config["device"]).type)'),
        ("device = torch.device(sys.argv[1])", "device = torch.device(torch.device(sys.argv[1]).type)"),
        ('name = config.get("device", "cpu")\ndevice = torch.device(name)',
         'name = config.get("device", "cpu")\ndevice = torch.device(torch.device(name).type)'),
        ('kind = "cuda"\ndevice = torch.device(f"{kind}:{args.number}")',
         'kind = "cuda"\ndevice = torch.device(torch.device(f"{kind}:{args.number}").type)'),
        ('def pick(name):\n    return torch.device(name)\ndevice = pick(args.device)',
         'def pick(name):\n    return torch.device(torch.device(name).type)\ndevice = pick(args.device)'),
        ('x = torch.ones(2).to(config["trainer"]["gpus"])',
         'x = torch.ones(2).to(torch.device(config["trainer"]["gpus"]).type)'),
        ('x = torch.ones(2, device=config["device"])', 'x = torch.ones(2, device=torch.device(config["device"]).type)'),
    ],
)  # fmt: skip
def test_a_setting_says_the_kind_of_device_and_not_its_number(before: str, after: str) -> None:
    """The run may name "cuda:0", which would be the GPU of every rank."""
    check_transformed(before, after, imports=SETTINGS)


@pytest.mark.parametrize(
    "lines",
    [
        'name = "cuda"\ndevice = torch.device(name)',
        'def pick(name="cuda"):\n    return torch.device(name)\ndevice = pick("cpu")',
        'settings = {"device": "cuda"}\nx = torch.ones(2).to(settings["device"])',
        'settings = dict(device="cuda")\ndevice = torch.device(settings["device"])',
        "device = torch.device(torch.device(args.device).type)",
        "is_gpu = torch.device(args.device).type == 'cuda'",
        'x = torch.ones(2).to(config["dtype"])',
        'table = torch.load("a.pt", map_location=config["device"])',
    ],
)
def test_what_the_script_says_itself_and_what_names_no_number_stay(lines: str) -> None:
    check_noop(lines, imports=SETTINGS)
