"""What convert() does with a program: nothing, a refusal, or a rewrite that it has checked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ddpify_codemods import Change, ConversionBug, Result, SourceError, convert

ENTRY, NETS, DATA = Path("train.py"), Path("nets.py"), Path("data.py")
TRAINING = """\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(4, 2)).mean().backward()
optimizer.step()
"""
ASKING = "import torch\n\nwidth = int(input())\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty file"),
        (" \n\n", "empty file"),
        ("print(1)\n", "no torch in it"),
        ("this is no Python, and there is no t-word in it", "no torch in it"),
        ("import torch\n\nprint(torch.ones(1))\n", "no training loop"),
        ("import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n", "no training loop"),
        ("import torch\n\nx = torch.ones(1, requires_grad=True)\nx.backward()\n", "no training loop"),
        ("import torch\nfrom ddpify_runtime import init_process_group\n", "no training loop"),
    ],
)
def test_nothing_to_do(text: str, reason: str) -> None:
    result = convert({ENTRY: text}, "cpu")[ENTRY]
    assert (result.code, result.reason, result.changes, result.findings) == (text, reason, (), ())


@pytest.mark.parametrize("target", ["cpu", "cuda", "xla"])
def test_a_second_conversion_has_nothing_to_do(target: str) -> None:
    once = convert({ENTRY: TRAINING}, target)[ENTRY]
    assert once.code != TRAINING and once.reason == ""
    assert convert({ENTRY: once.code}, target)[ENTRY].reason == "already converted"


def test_changes_name_the_lines_of_the_original() -> None:
    changes = convert({ENTRY: TRAINING}, "cpu")[ENTRY].changes
    assert [(change.rule, change.line) for change in changes] == [("DDP101", 1), ("DDP102", 4), ("DDP101", 6)]
    assert changes[1] == Change("DDP102", 4, "make model distributed")


def test_a_refusal_in_one_file_leaves_all_of_them() -> None:
    results = convert({ENTRY: f"import nets\n{TRAINING}", NETS: ASKING}, "cpu")
    assert results[ENTRY].code == f"import nets\n{TRAINING}"
    assert results[ENTRY].findings == () and results[ENTRY].changes == ()
    [finding] = results[NETS].findings
    assert (finding.rule, finding.severity, finding.line) == ("DDP307", "refused", 3)


def test_what_a_module_does_as_a_script_of_its_own_refuses_no_other_program() -> None:
    module = "size = 4\nif __name__ == '__main__':\n    while input() != 'end':\n        breakpoint()\n"
    results = convert({ENTRY: f"import data\n{TRAINING}", DATA: module}, "cpu")
    assert results[ENTRY].changes
    assert not results[DATA].findings


def test_what_a_module_does_as_a_script_of_its_own_stays_as_it_is() -> None:
    module = "import torch\nif __name__ == '__main__':\n    torch.save(torch.ones(1).cuda(), 'x.pt')\n"
    results = convert({ENTRY: f"import data\n{TRAINING}", DATA: module}, "cpu")
    assert (results[DATA].code, results[DATA].changes) == (module, ())


def test_the_questions_of_a_script_of_its_own_are_told_there() -> None:
    module = "size = 4\nif __name__ == '__main__':\n    while input() != 'end':\n        breakpoint()\n"
    assert [each.rule for each in convert({DATA: f"{TRAINING}{module}"}, "cpu")[DATA].findings] == ["DDP307"] * 2


def test_the_same_finding_is_told_once_for_a_line() -> None:
    [result] = convert({ENTRY: f"{TRAINING}x = input() + input()\n"}, "cpu").values()
    assert [each.rule for each in result.findings] == ["DDP307"]


def test_only_the_entry_joins_the_process_group() -> None:
    results = convert({ENTRY: TRAINING, NETS: TRAINING}, "cpu")
    assert "init_process_group" in results[ENTRY].code
    assert "init_process_group" not in results[NETS].code
    assert "DistributedDataParallel(model)" in results[NETS].code


def test_a_converted_module_of_another_program_is_read_like_the_others() -> None:
    converted = "from ddpify_runtime import rank_zero_only\n\nwidth = int(input())\n"
    [finding] = convert({ENTRY: TRAINING, NETS: converted}, "cpu")[NETS].findings
    assert (finding.rule, finding.severity) == ("DDP307", "refused")


def test_loop_and_optimizer_may_be_in_different_files() -> None:
    entry = "import torch\nfrom nets import fit\n\nfit(torch.nn.Linear(2, 1))\n"
    fit = (
        "from torch import optim\n\n\ndef fit(model):\n    optimizer = optim.SGD(model.parameters())\n"
        "    model().backward()\n"
    )
    results = convert({ENTRY: entry, NETS: fit}, "cpu")
    assert "    model = DistributedDataParallel(model)\n    optimizer" in results[NETS].code
    assert "init_process_group" in results[ENTRY].code


def test_a_module_with_a_loop_but_without_entry_code_does_not_join() -> None:
    text = TRAINING.replace("\nmodel", "\n\ndef fit():\n    model", 1).replace("\noptimizer", "\n    optimizer")
    text = text.replace("\nmodel(", "\n    model(")
    code = convert({ENTRY: text}, "cpu")[ENTRY].code
    assert "DistributedDataParallel" in code and "init_process_group" not in code


@pytest.mark.parametrize("text", ["import torch\nprint 1\n", "import torch\ndef f(:\n", "import torch\n  x = 1\n"])
def test_text_that_does_not_parse(text: str) -> None:
    with pytest.raises(SourceError, match="not valid Python 3") as caught:
        convert({DATA: text}, "cpu")
    assert (caught.value.path, caught.value.line) == (DATA, 2)


@pytest.mark.parametrize(
    ("line", "advice"), [("x.cuda(async=True)", "non_blocking"), ("%matplotlib inline", "IPython"), ("!pip", "IPython")]
)
def test_text_of_older_python_or_of_a_notebook(line: str, advice: str) -> None:
    with pytest.raises(SourceError, match=advice) as caught:
        convert({DATA: f"import torch\n{line}\n"}, "cpu")
    assert caught.value.line == 2


def test_null_bytes() -> None:
    with pytest.raises(SourceError):
        convert({DATA: "import torch\0"}, "cpu")


def test_odd_escapes_do_not_warn() -> None:
    assert convert({ENTRY: TRAINING + "pattern = '\\d'\n"}, "cpu")[ENTRY].code.endswith("destroy_process_group()\n")


@pytest.mark.parametrize(
    "comment", ["# ddpify: ignore[DDP307]", "# why  # ddpify: ignore", "#ddpify:ignore[DDP101, DDP307]"]
)
def test_a_rule_can_be_ignored_on_a_line(comment: str) -> None:
    asking = f"{ASKING.rstrip()}  {comment}\n"
    result = convert({ENTRY: TRAINING, NETS: asking}, "cpu")
    assert result[NETS].findings == ()
    assert result[ENTRY].code != TRAINING


@pytest.mark.parametrize("name", ["DDP0307", "DDP307 DDP101", "interactive", "DDP307]"])
def test_a_rule_that_does_not_exist_is_told(name: str) -> None:
    known = name == "DDP307]"
    text = f"import torch\n# ddpify: ignore[{name}]\n"
    found = convert({ENTRY: TRAINING, NETS: text}, "cpu")[NETS].findings
    told = [(finding.rule, finding.severity, finding.line) for finding in found]
    assert told == ([] if known else [("DDP402", "warning", 2)])


BY_HAND = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
if dist.is_initialized():
    print(dist.get_rank())
"""


@pytest.mark.parametrize("comment", ["# ddpify: ignore", "# ddpify: ignore[DDP302]"])
def test_what_divides_by_hand_is_not_divided_again(comment: str) -> None:
    by_hand = BY_HAND + TRAINING.replace("optimizer =", f"model = DDP(model)  {comment}\noptimizer =", 1)
    assert "DDP(model)" in by_hand
    for text in (by_hand, re.sub("$", f"  {comment}", by_hand, flags=re.MULTILINE)):
        result = convert({ENTRY: text}, "cpu")[ENTRY]
        assert result.code == text
        assert [finding.rule for finding in result.findings if finding.severity == "refused"] == ["DDP302"]


def test_a_question_for_a_process_group_can_be_ignored() -> None:
    question = "import torch.distributed as dist\nmain = not dist.is_initialized()"
    code = convert({ENTRY: f"{question}\n{TRAINING}"}, "cpu")[ENTRY].code
    assert "main = True\n" in code and "init_process_group(" in code
    code = convert({ENTRY: f"{question}  # ddpify: ignore[DDP302]\n{TRAINING}"}, "cpu")[ENTRY].code
    assert "main = not dist.is_initialized()" in code and "init_process_group(" in code


def test_another_rule_is_not_ignored() -> None:
    text = ASKING.rstrip("\n") + "  # ddpify: ignore[DDP101]\n"
    assert convert({ENTRY: TRAINING, NETS: text}, "cpu")[NETS].findings


def test_ignored_edits_are_not_made() -> None:
    text = TRAINING.replace("lr=0.1)", "lr=0.1)  # ddpify: ignore[DDP102]")
    assert "DistributedDataParallel" not in convert({ENTRY: text}, "cpu")[ENTRY].code


def test_a_program_of_which_nothing_is_divided_is_warned_of() -> None:
    text = "from torch import optim\nfrom nets import weights\noptimizer = optim.SGD(weights)\nloss.backward()\n"
    [finding] = convert({ENTRY: text}, "cpu")[ENTRY].findings
    assert (finding.rule, finding.severity, finding.line) == ("DDP102", "warning", 3)


def refusals(text: str) -> list[tuple[str, int]]:
    [result] = convert({ENTRY: text}, "cpu").values()
    assert result.code == text
    return [(finding.rule, finding.line) for finding in result.findings if finding.severity == "refused"]


STEP = "model(torch.ones(4, 2)).mean().backward()\n"


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        (f"from tools import setup\nimport torch\nmodel, opt = setup()\n{STEP}opt.step()\n", "DDP311", 5),
        (f"import torch, t\nmodel = t.Model()\n{STEP}model.optimizer.step()\n", "DDP311", 4),
        (f"import torch, t\nmodel = t.Model()\n{STEP}torch._foreach_add_(t.ps, t.gs, alpha=-0.1)\n", "DDP311", 4),
        (f"import torch, t\nmodel = t.Model()\n{STEP}torch.optim._functional.sgd(t.ps, t.gs, [])\n", "DDP311", 4),
        (f"import torch, t\nmodel = t.Model()\n{STEP}torch.nn.utils.vector_to_parameters(t.v, t.ps)\n", "DDP311", 4),
        (f"import torch, t\nmodel = t.Model()\n{STEP}torch.sub(t.p.data, t.p.grad, out=t.p.data)\n", "DDP311", 4),
        (
            f"import torch, t\nmodel = t.Model()\n{STEP}new = {{n: p - p.grad for n, p in t.ps}}\n"
            "model.load_state_dict(new)\n",
            "DDP311",
            5,
        ),
        ("import torch, t\nmodel = t.Model()\ngetattr(model(t.x), 'backward')()\nt.optimizer.step()\n", "DDP311", 4),
        ("import torch, t\nmodel = t.Model()\n[*map(torch.Tensor.backward, t.losses)]\nt.o.step()\n", "DDP311", 4),
        ("import importlib, torch\nrun = importlib.import_module(torch.name).run\nrun()\n", "DDP311", 2),
        ("import importlib, sys\nimportlib.import_module(sys.argv[1]).main()\n", "DDP311", 2),
        ("import torch\nw = torch.ones(1)\n(w * 2).backward()\nw.data -= w.grad\n", "DDP304", 4),
        ("import torch\nw = torch.ones(1)\n(w * 2).backward()\nw = w - 0.1 * w.grad\n", "DDP304", 4),
        ("import torch\nw = torch.ones(1)\n(w * 2).backward()\nfor p in [w]:\n    p -= p.grad\n", "DDP304", 4),
        (
            "import torch\ndef sgd(ps):\n    for p in ps:\n        p -= p.grad\n"
            "w = torch.ones(1)\n(w * 2).backward()\nsgd([w])\n",
            "DDP304",
            3,
        ),
        (
            "import torch\nmodel = Net()\ngrads = torch.func.grad(model)(1)\n"
            "for p, g in zip(model.parameters(), grads):\n    p.data -= g\n",
            "DDP305",
            3,
        ),
    ],
)
def test_training_that_cannot_be_followed(text: str, rule: str, line: int) -> None:
    assert refusals(text) == [(rule, line)]


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = torch.ones(1)\nx.backward()\nprint(x.grad.abs())\n",
        "import importlib, torch\nm = importlib.import_module(name).Net()\nm.eval()\n",
        "import importlib, torch\nfor name in names:\n    importlib.import_module(name)\n",
        "import importlib, torch\nm = importlib.import_module('nets')\nm.test()\n",
        "import torch\nfor e, p in zip(ema.parameters(), model.parameters()):\n    e.data.mul_(0.9).add_(p.data)\n",
    ],
)
def test_gradients_and_modules_that_are_only_looked_at(text: str) -> None:
    result = convert({ENTRY: text}, "cpu")[ENTRY]
    assert (result.code, result.reason) == (text, "no training loop")
    assert [each.severity for each in result.findings] == ["note"] * ("(name)" in text)  # DDP121


def test_what_is_not_found_is_told_of_a_program_that_does_not_train() -> None:
    """It may be what trains."""
    result = convert({ENTRY: "import torch\nfrom .learner import Learner\nLearner().run()\n"}, "cpu")[ENTRY]
    assert result.reason == "no training loop"
    assert [each.rule for each in result.findings] == ["DDP121"]


@pytest.mark.parametrize(
    "build",
    [
        "config.init_obj('optimizer', torch.optim, params)",
        "Lion(params)",
        "OPTIMIZERS[name](params)",
        "OPTIMIZERS.get(name)(params)",
        "cls(params)",
        "make(params)",
        "build(name, params)",
        "create_optimizer(args, model)",
        "hand_on(Lion(model.parameters()))",
        "eval('torch.optim.' + name)(params)",
        "getattr(importlib.import_module('torch.optim'), name)(params)",
    ],
)
def test_optimizers_that_something_else_makes(build: str) -> None:
    header = (
        "import functools, importlib, torch\nfrom libs import Lion, create_optimizer\n"
        "OPTIMIZERS = {'sgd': torch.optim.SGD}\ncls = getattr(torch.optim, name)\n"
        "make = functools.partial(torch.optim.SGD, lr=0.1)\n"
        "def build(name, params):\n    return OPTIMIZERS[name](params)\ndef hand_on(it):\n    return it\n"
        "model = torch.nn.Linear(2, 1)\nparams = filter(bool, model.parameters())\n"
    )
    code = convert({ENTRY: f"{header}thing = {build}\n{STEP}thing.step()\n"}, "cpu")[ENTRY].code
    assert f"model = DistributedDataParallel(model)\nthing = {build}\n" in code


ASKING_FOR_RANKS = """\
import torch.distributed as dist


def is_dist():
    if not dist.is_available() or not dist.is_initialized():
        return False
    return True


def world_size():
    return dist.get_world_size() if is_dist() else 1


def is_main():
    return not dist.is_initialized() or dist.get_rank() == 0


def reduced(loss):
    size = world_size()
    if size < 2:
        return loss
    dist.all_reduce(loss)
    return loss / size
"""


def test_asking_for_ranks_without_ever_joining_a_group_keeps_the_answer() -> None:
    saving = "if nets.is_main():\n    torch.save(model.state_dict(), 'model.pt')\n"
    results = convert({ENTRY: f"import nets\n{TRAINING}{saving}", NETS: ASKING_FOR_RANKS}, "cpu")
    assert "is_initialized" not in results[NETS].code and "dist.get_rank() == 0" in results[NETS].code
    assert "    rank_zero_only(torch.save)(" in results[ENTRY].code
    in_a_group = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 1)
    answers: dict[str, Any] = {"dist": in_a_group}
    exec(results[NETS].code.replace("import torch.distributed as dist", ""), answers)
    assert (answers["is_main"](), answers["reduced"](5)) == (True, 5)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ASKING_FOR_RANKS + "\n\ndef wait():\n    dist.barrier()\n", 27),
        (ASKING_FOR_RANKS + "\n\ndef wait(size):\n    if size > 1:\n        dist.barrier()\n", 28),
        ("import torch.distributed as dist\nrank = dist.get_rank()\n", 2),
        (ASKING_FOR_RANKS + "\n\ndef join():\n    dist.init_process_group('gloo')\n\n\njoin()\n", 27),
    ],
)
def test_more_than_asking_for_ranks_is_refused(text: str, line: int) -> None:
    results = convert({ENTRY: f"import nets\n{TRAINING}", NETS: text}, "cpu")
    assert [finding.rule for finding in results[NETS].findings if finding.severity == "refused"] == ["DDP302"]
    assert line in [finding.line for finding in results[NETS].findings]


def test_libcst_is_only_imported_to_rewrite() -> None:
    code = (
        "import sys, pathlib, ddpify_codemods as d\n"
        "d.convert({pathlib.Path('a.py'): 'import torch'}, 'cpu')\n"
        "assert 'libcst' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_follows_values_is_only_imported_for_the_plain_style() -> None:
    code = (
        "import sys, pathlib, ddpify_codemods as d\n"
        f"text = {TRAINING!r}\n"
        "assert d.convert({pathlib.Path('a.py'): text}, 'cpu')[pathlib.Path('a.py')].code != text\n"
        "assert 'ddpify_codemods.rules.plain' not in sys.modules\n"
        "assert 'ddpify_codemods.facts.flow.program' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("style", ["exact", "plain"])
def test_helpers_that_are_never_called_join_no_group(style: str) -> None:
    """A file of helpers for several processes, of which the program uses the question alone."""
    helpers = """\
import torch.distributed as dist
def init(args):
    dist.init_process_group("nccl", rank=args.rank)
def is_main():
    return not dist.is_initialized() or dist.get_rank() == 0
def reduced(value):
    if not dist.is_initialized():
        return value
    value = value.to("cuda")
    dist.all_reduce(value)
    return value
"""
    train = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from helpers import init, is_main, reduced
torch.manual_seed(0)
data = TensorDataset(torch.rand(32, 4))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
if is_main():
    print(reduced(model.bias))
"""
    entry, other = Path("train.py"), Path("helpers.py")
    results = convert({entry: train, other: helpers}, "cpu", style=style)
    assert "process_group" in results[entry].code or "runtime" in results[entry].code
    assert 'dist.init_process_group("nccl", rank=args.rank)' in results[other].code
    [warning] = results[other].findings
    assert warning.severity == "warning" and "(init)" in warning.message
    joining = convert({entry: train.replace("model = ", "init(args)\nmodel = "), other: helpers}, "cpu", style=style)
    assert "not dist.is_initialized() or" in joining[other].code


def test_what_python_takes_no_more_is_not_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    late = f"{TRAINING}from __future__ import annotations\n"
    monkeypatch.setattr("ddpify_codemods.engine._convert", lambda *_: {ENTRY: Result(late)})
    with pytest.raises(ConversionBug, match="does not compile"):
        convert({ENTRY: TRAINING}, "cpu")
