from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed


@pytest.mark.parametrize(
    "lines",
    [
        "use_cuda = torch.cuda.is_available()",
        'if not torch.cuda.is_available():\n    raise SystemExit("no GPU")',
        "assert torch.cuda.is_available()",
    ],
)
def test_gpus_answer_for_themselves(lines: str) -> None:
    check_noop(lines, "cuda")


@pytest.mark.parametrize("target", ["cpu", "xla"])
@pytest.mark.parametrize(
    "lines",
    [
        "print(torch.cuda.is_available())",
        'print(f"GPU: {torch.cuda.is_available()}")',
        "if torch.cuda.is_available():\n    torch.cuda.manual_seed_all(3)",
        "if torch.cuda.is_available():\n    torch.backends.cudnn.benchmark = True",
        "options = dict(pin_memory=torch.cuda.is_available())",
        "pin = torch.cuda.is_available()\noptions = dict(pin_memory=pin)",
    ],
)
def test_harmless_questions_stay(lines: str, target: str) -> None:
    check_noop(lines, target)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("use_cuda = torch.cuda.is_available()", "use_cuda = False"),
        ("args = 1\nuse_cuda = not args and torch.cuda.is_available()", "args = 1\nuse_cuda = False"),
        ("use_cuda = torch.cuda.is_available()\nif use_cuda:\n    trainer = nn.Linear(1, 1).cuda()",
         "use_cuda = False\nif use_cuda:\n    trainer = nn.Linear(1, 1).cuda()"),
        ('use_cuda = torch.cuda.is_available()\ndevice = torch.device("cuda" if use_cuda else "cpu")',
         'use_cuda = False\ndevice = torch.device("cuda" if use_cuda else "cpu")'),
        ("device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')", "device = torch.device('cpu')"),
        ('kind = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"',
         'kind = "cpu"'),
        ("device = torch.accelerator.current_accelerator()", 'device = torch.device("cpu")'),
        ('kind = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"',
         'kind = "cpu"'),
        ("if torch.cuda.is_available():\n    model = nn.Linear(1, 1).cuda()",
         "if False:\n    model = nn.Linear(1, 1).cuda()"),
        ("assert torch.cuda.is_available()\nx = 1", "x = 1"),
        ('if not torch.cuda.is_available():\n    raise SystemExit("no GPU")\nx = 1', "x = 1"),
    ],
)  # fmt: skip
def test_cpu_says_no(before: str, after: str) -> None:
    check_transformed(before, after, "cpu")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("use_cuda = torch.cuda.is_available()", "use_cuda = True"),
        ("args = 1\nuse_cuda = not args and torch.cuda.is_available()", "args = 1\nuse_cuda = not args"),
        ("device = torch.accelerator.current_accelerator()", "device = torch_xla.device()"),
        ("use_mps = torch.backends.mps.is_available()", "use_mps = False"),
        ("if torch.cuda.is_available():\n    model = nn.Linear(1, 1).cuda()",
         "if True:\n    model = nn.Linear(1, 1).to(torch_xla.device())"),
    ],
)  # fmt: skip
def test_xla_says_yes(before: str, after: str) -> None:
    check_transformed(before, after, "xla")
