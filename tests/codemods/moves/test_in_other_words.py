"""What is asked of plain code in other words than torch's, and cannot be done, is refused."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest
from ddpify_codemods import ONE_DEVICE, Result, convert, converted_for

from tests.codemods.moves.plain_programs import BEFORE, PATH

HEAD, TRAINING = BEFORE.split("\n\n", 1)
SCRIPT = f"{HEAD}\n\n\ndef main():\n{indent(TRAINING, '    ')}\n\nif __name__ == '__main__':\n    main()\n"
ENGINES = {"xla": "torch_xla", "ignite": "Ignite", "horovod": "Horovod"}


def there(target: str, **options: Any) -> str:
    return convert({PATH: SCRIPT}, target, style="plain", **options)[PATH].code


def asked(code: str, target: str, style: str = "plain", **options: Any) -> Result:
    return convert({PATH: code}, target, style=style, **options)[PATH]


@pytest.mark.parametrize("target", ENGINES)
def test_its_target_is_known_and_it_stays(target: str) -> None:
    code = there(target)
    assert converted_for({PATH: code}) == target
    result = asked(code, target)
    assert (result.code, result.findings) == (code, ()) and "already" in result.reason


@pytest.mark.parametrize("target", ENGINES)
def test_what_cannot_be_done_is_one_refusal(target: str) -> None:
    code = there(target)
    for result in (asked(code, ONE_DEVICE, ""), asked(code, "cpu", "exact"), asked(code, target, per_process=True)):
        assert result.code == code
        [finding] = result.findings
        assert finding.severity == "refused" and not finding.distributed and ENGINES[target] in finding.message


@pytest.mark.parametrize(("target", "leads_on"), [("xla", False), ("ignite", False), ("horovod", True)])
def test_another_target_is_reached_from_horovod_alone(target: str, leads_on: bool) -> None:
    code = there(target)
    result = asked(code, "cuda")
    assert (result.code != code, "horovod" in result.code) == (leads_on, False)
    assert [each.severity for each in result.findings if each.rule == "DDP302"] == ["refused"] * (not leads_on)


@pytest.mark.parametrize("target", ENGINES)
def test_what_is_there_may_be_asked_for(target: str) -> None:
    code = there(target, per_process=True)
    assert asked(code, target, per_process=True).findings == ()
    assert [each.severity for each in asked(code, target, per_process=False).findings] == ["refused"]


def test_code_by_hand_is_not_said_to_be_converted() -> None:
    code = "\n".join(line for line in there("horovod").splitlines() if "devnull" not in line or "torch" in line)
    code = code.replace("if hvd.rank() != 0:\n", "", 1)
    assert converted_for({PATH: code}) == ""
    assert convert({PATH: code}, ONE_DEVICE)[PATH].reason == "not converted"
