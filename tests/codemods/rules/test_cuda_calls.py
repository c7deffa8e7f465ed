from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed, findings


@pytest.mark.parametrize(
    "lines",
    [
        "net = nn.Linear(1, 1).cuda()",
        "x = torch.ones(2).cuda(non_blocking=True)",
        "x = torch.ones(2).cuda(None)",
        'device = torch.device("cuda")\nx = torch.ones(2).cuda(device)',
        "torch.cuda.manual_seed(1)\ntorch.cuda.empty_cache()\ntorch.cuda.synchronize()",
        "x = torch.ones(2).to(torch.float16)",
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"',
        'def set(name):\n    os.environ[name] = "0"\nset("CUDA_VISIBLE_DEVICES")\nset("OMP_NUM_THREADS")',
    ],
)
def test_gpu_code_without_numbers_stays(lines: str) -> None:
    check_noop(lines, imports="import os")


def test_an_own_method_of_that_name_stays() -> None:
    lines = "class Batch:\n    def cuda(self, number):\n        return self\nbatch = Batch().cuda(0)"
    check_noop(lines)
    check_noop(lines, "cpu")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("net = nn.Linear(1, 1).cuda(0)", "net = nn.Linear(1, 1).cuda()"),
        ("gpu = 0\nnet = nn.Linear(1, 1).cuda(gpu)", "gpu = 0\nnet = nn.Linear(1, 1).cuda()"),
        ("device = 0\nx = torch.ones(2).cuda(device)", "device = 0\nx = torch.ones(2).cuda()"),
        ("x = torch.ones(2).cuda(device=0, non_blocking=True)", "x = torch.ones(2).cuda(non_blocking=True)"),
        ("x = torch.ones(2).cuda(0, True)", "x = torch.ones(2).cuda(non_blocking=True)"),
        ("x = torch.ones(2).to(0)", 'x = torch.ones(2).to("cuda")'),
        ("x = torch.ones(2, device=0)", 'x = torch.ones(2, device="cuda")'),
        ("torch.cuda.set_device(0)\nx = 1", "x = 1"),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = "0"\nx = 1', "x = 1"),
        ('os.environ.setdefault("CUDA_VISIBLE_DEVICES", "1")\nx = 1', "x = 1"),
        ('os.environ.update({"CUDA_VISIBLE_DEVICES": "0"})\nx = 1', "x = 1"),
        ('os.environ.update(CUDA_VISIBLE_DEVICES="0")\nx = 1', "x = 1"),
        ('os.environ |= {"CUDA_VISIBLE_DEVICES": "0"}\nx = 1', "x = 1"),
        ('os.putenv("CUDA_VISIBLE_DEVICES", "0")\nx = 1', "x = 1"),
        ('key = "CUDA_VISIBLE_DEVICES"\nos.environ[key] = "0"', 'key = "CUDA_VISIBLE_DEVICES"'),
        ("torch.cuda.synchronize(0)", "torch.cuda.synchronize()"),
        ("gpu = 0\nx = torch.cuda.memory_allocated(gpu)", "gpu = 0\nx = torch.cuda.memory_allocated()"),
        ("with torch.cuda.device(0):\n    x = 1", "with torch.cuda.device(-1):\n    x = 1"),
    ],
)
def test_numbered_gpus_become_the_own_one(before: str, after: str) -> None:
    check_transformed(before, after, imports="import os")


def test_a_setting_alone_in_its_block_leaves_pass() -> None:
    check_transformed("if True:\n    torch.cuda.set_device(0)", "if True:\n    pass")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("net = nn.Linear(1, 1).cuda(0)", "net = nn.Linear(1, 1).cpu()"),
        ("x, y = torch.ones(2).cuda(), torch.ones(2).cuda(non_blocking=True)",
         "x, y = torch.ones(2).cpu(), torch.ones(2).cpu()"),
        ("x = torch.ones(2).to(0)", 'x = torch.ones(2).to("cpu")'),
        ("torch.cuda.synchronize()\nx = 1", "x = 1"),
    ],
)  # fmt: skip
def test_cpu_stays_on_the_cpu(before: str, after: str) -> None:
    check_transformed(before, after, "cpu")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("net = nn.Linear(1, 1).cuda(0)", "net = nn.Linear(1, 1).to(torch_xla.device())"),
        ("x = torch.ones(2).cuda(non_blocking=True)", "x = torch.ones(2).to(torch_xla.device(), non_blocking=True)"),
        ("x = torch.ones(2).to(0)", "x = torch.ones(2).to(torch_xla.device())"),
        ("torch.cuda.empty_cache()\nx = 1", "x = 1"),
    ],
)
def test_xla_moves_to_its_device(before: str, after: str) -> None:
    check_transformed(before, after, "xla")


def test_what_needs_a_gpu_is_named() -> None:
    assert [each.line for each in findings("print(torch.cuda.get_device_name(0))", "cpu")] == [5]


def test_what_a_gpu_check_guards_is_not_named() -> None:
    assert not findings("if torch.cuda.is_available():\n    print(torch.cuda.get_device_name(0))", "cpu")


def test_one_entry_of_several_is_only_said() -> None:
    lines = 'os.environ.update({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})'
    check_noop(lines, imports="import os")
    assert any("left with the same GPU" in each.message for each in findings(f"import os\n{lines}"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n = torch.cuda.device_count()", "n = 1"),
        ("if torch.cuda.device_count() > 1:\n    n = 2\nn = 3", "n = 3"),
        ("if torch.cuda.device_count() > 1:\n    n = 2\nelse:\n    n = 3", "if 1 > 1:\n    n = 2\nelse:\n    n = 3"),
        ('n = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))', 'n = len("0".split(","))'),
        (
            "if n:\n    n = 2\nelif torch.cuda.device_count() > 1:\n    n = 3",
            "if n:\n    n = 2\nelif 1 > 1:\n    n = 3",
        ),
    ],
)
def test_what_asks_for_the_gpus_that_the_script_chose_gets_one(before: str, after: str) -> None:
    check_transformed(f'os.environ["CUDA_VISIBLE_DEVICES"] = "0"\n{before}', after, imports="import os")
    check_noop(before)


def test_gpus_that_an_option_chooses_are_those_of_the_start() -> None:
    chosen = 'gpus = str(3)\nos.environ["CUDA_VISIBLE_DEVICES"] = gpus\n'
    asked = f'{chosen}n = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))'
    check_transformed(asked, 'gpus = str(3)\nn = len(gpus.split(","))', imports="import os")
    (found,) = findings(f"import os\n{chosen}n = torch.cuda.device_count()")
    assert (found.severity, found.message) == ("warning", "this counts all GPUs of the machine now")
    (found,) = findings(
        f'import os\n{chosen}\ndef count():\n    return len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))\n'
    )
    assert found.severity == "refused"
    (found,) = findings(f'import os\n{chosen}gpus = [1]\nn = len(os.environ["CUDA_VISIBLE_DEVICES"])')
    assert found.severity == "refused"


def test_a_gpu_that_is_chosen_at_times_is_none_to_count() -> None:
    chosen = 'single = len(str(3)) > 1\nif single:\n    os.environ["CUDA_VISIBLE_DEVICES"] = "0"\n'
    (found,) = findings(f"import os\n{chosen}n = torch.cuda.device_count()")
    assert found.severity == "warning"
    (found,) = findings(f'import os\n{chosen}n = len(os.environ["CUDA_VISIBLE_DEVICES"])')
    assert found.severity == "refused"
