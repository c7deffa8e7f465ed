"""Every form of a script to every target: it is converted, and that stays; or it is right already; or it is refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from ddpify_codemods import ONE_DEVICE, TARGETS, Result, convert

from tests.codemods.forms import BY_HAND
from tests.codemods.forms import ONE_DEVICE as SCRIPT

PATH = Path("train.py")
PLAIN = ("cpu", "cuda", "mpi", "xpu", "xla", "horovod", "ignite")
FORMS = [*BY_HAND, *(f"exact {name}" for name in TARGETS if name != "ignite"), *(f"plain {name}" for name in PLAIN)]
STAYS = {
    *(("torchrun, nccl", "cuda"), ("torchrun, gloo", "cpu"), ("spawn", "cuda"), ("Horovod", "horovod")),
    *((f"plain {name}", name) for name in PLAIN),
    *((f"exact {name}", name) for name in TARGETS),
    # One process is what `none` is for, and what was written by hand is its author's.
    *((name, ONE_DEVICE) for name in (*BY_HAND, "plain horovod", "plain ignite", "plain xla")),
}
# What is in the words of XLA or Ignite is not brought to another target.
REFUSED = {(f"plain {name}", other) for name in ("xla", "ignite") for other in TARGETS if other != name}
# What another target would have made of the script itself; from a target of the CPU, `.cpu()` has become the script's.
SAME = {(f"plain {name}", other) for name in ("cuda", "mpi") for other in ("cpu", "mpi")} | {
    ("plain cuda", other) for other in PLAIN
}


@cache
def source(form: str) -> str:
    style, _, target = form.partition(" ")
    return BY_HAND.get(form) or moved(SCRIPT, target, style).code


def moved(text: str, target: str, style: str = "") -> Result:
    return convert({PATH: text}, target, style=style)[PATH]


def is_refused(result: Result) -> bool:
    """Whether anything is refused but that a program which is right for its target be distributed again."""
    return any(each.severity == "refused" and each.rule != "DDP302" for each in result.findings)


@pytest.mark.parametrize("form", FORMS)
def test_every_target(form: str) -> None:
    for target in (*TARGETS, ONE_DEVICE):
        before, cell = source(form), (form, target)
        result = moved(before, target)
        if cell in STAYS | REFUSED:
            assert result.code == before, cell
            assert any(each.severity == "refused" for each in result.findings) or cell in STAYS, cell
            continue
        assert result.code != before, (cell, result.findings)
        compile(result.code, str(PATH), "exec")
        again = moved(result.code, target)
        assert again.code == result.code and not is_refused(again), (cell, again.findings)
        assert not [each for each in again.findings if each.rule.startswith("DDP5") and each.severity == "warning"], (
            cell
        )
        if cell in SAME:
            assert result.code == moved(SCRIPT, target, "plain").code, cell


@pytest.mark.parametrize("form", FORMS)
def test_a_check_says_what_a_conversion_does(form: str) -> None:
    """Without for_writing no text is made: whether it would be another one is known all the same."""
    before = source(form)
    for target in (*TARGETS, ONE_DEVICE):
        written, checked = moved(before, target), convert({PATH: before}, target, for_writing=False)[PATH]
        assert (checked.code == before) == (written.code == before), target
        assert (checked.changes, checked.findings) == (written.changes, written.findings), target


def test_what_mpirun_says_is_not_lost() -> None:
    by_mpirun = 'os.environ["RANK"] = os.environ.get("PMI_RANK", "0")\n\n\ndef main():'
    ccl = moved(BY_HAND["torchrun, nccl"].replace("def main():", by_mpirun).replace("nccl", "ccl"), "cuda")
    assert '"nccl"' in ccl.code and ccl.launch.startswith("mpirun")
    for target in ("horovod", "ignite"):
        assert any("PMI_RANK" in each.message for each in moved(ccl.code, target).findings), target


def test_a_model_and_batches_on_the_cpu_go_onto_accelerators() -> None:
    on_cpu = moved(BY_HAND["torchrun, nccl"], "cpu").code
    assert on_cpu.count(".cpu()") == 3
    for target, device in (("cuda", '"cuda"'), ("xpu", '"xpu"'), ("xla", "torch_xla.device()")):
        assert moved(on_cpu, target).code.count(f".to({device})") >= 3 and ".cpu()" not in moved(on_cpu, target).code
