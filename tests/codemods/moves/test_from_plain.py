"""Programs in the plain style become exact ones, and are brought up to date."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest
from ddpify_codemods import ONE_DEVICE, convert

from tests.codemods.moves.plain_programs import BEFORE, NOT_KEPT, PATH, in_fixture, lines, plain
from tests.e2e import fixtures


@pytest.mark.parametrize("name", ["main_guard", "trainer_class", "tied_weights", "three_modules"])
def test_a_fixture_becomes_exact(name: str) -> None:
    before, there = in_fixture(name)
    back = {path: result.code for path, result in convert(there, ONE_DEVICE).items()}
    exact = {path: result.code for path, result in convert(there, "cuda", style="exact").items()}
    assert exact == {path: result.code for path, result in convert(back, "cuda", style="exact").items()}
    if name not in NOT_KEPT:
        assert lines(exact) == lines({path: result.code for path, result in convert(before, "cuda").items()})


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("cpu", {}),
        ("cpu", {"per_process": True}),
        ("cpu", {"optimizer_sharding": True}),
        ("cpu", {"fully_sharded": True}),
        ("cuda", {"entry": "spawn"}),
        ("mpi", {}),
        ("xpu", {}),
        ("xpu", {"backend": "ccl"}),
    ],
)
def test_the_very_script_comes_back(target: str, options: dict[str, Any]) -> None:
    there = plain(target, **options)
    assert convert({PATH: there}, ONE_DEVICE)[PATH].code == BEFORE
    assert convert({PATH: there}, target, style="exact", per_process=False)[PATH].code.count("ddpify_runtime") >= 1
    again = convert({PATH: there}, target, style="plain")[PATH]
    assert (again.code, again.reason) == (there, "already converted")


@pytest.mark.parametrize(
    ("target", "before", "asked", "after"),
    [
        ("cpu", {}, {"fully_sharded": True}, {"fully_sharded": True}),
        ("cpu", {"fully_sharded": True}, {"fully_sharded": False}, {}),
        ("cpu", {"fully_sharded": True}, {"per_process": True}, {"fully_sharded": True, "per_process": True}),
        ("cpu", {"optimizer_sharding": True}, {"fully_sharded": True}, {"fully_sharded": True}),
        ("cpu", {}, {"optimizer_sharding": True}, {"optimizer_sharding": True}),
        ("cpu", {}, {"per_process": True}, {"per_process": True}),
        ("cpu", {"per_process": True}, {"per_process": False}, {}),
        ("cuda", {"per_process": True}, {"entry": "spawn"}, {"per_process": True, "entry": "spawn"}),
        ("cuda", {"entry": "spawn"}, {"entry": "torchrun"}, {}),
    ],
)
@pytest.mark.parametrize("style", ["", "plain"])
def test_what_is_asked_of_plain_code_is_done(
    target: str, before: dict[str, Any], asked: dict[str, Any], after: dict[str, Any], style: str
) -> None:
    there = plain(target, **before)
    result = convert({PATH: there}, target, style=style, **asked)[PATH]
    assert result.code == plain(target, **after)
    assert not any(each.severity == "refused" for each in result.findings)


def test_another_backend_is_asked_for_with_the_style() -> None:
    result = convert({PATH: plain("xpu")}, "xpu", style="plain", backend="ccl")[PATH]
    assert result.code == plain("xpu", backend="ccl")


def test_what_is_asked_of_plain_code_that_a_person_has_changed_is_refused() -> None:
    edited = plain().replace("DistributedDataParallel(model)", "DistributedDataParallel(model, static_graph=True)", 1)
    for asked in ({"per_process": True}, {"optimizer_sharding": True}):
        result = convert({PATH: edited}, "cpu", **asked)[PATH]  # type: ignore[arg-type]
        assert result.code == edited
        [refused] = [each for each in result.findings if each.severity == "refused"]
        assert "static_graph" in edited.splitlines()[refused.line - 1]


def test_an_optimizer_whose_model_is_divided_is_not_divided_by_itself() -> None:
    there = plain(fully_sharded=True)
    result = convert({PATH: there}, "cpu", optimizer_sharding=True)[PATH]
    assert (result.code, [each.severity for each in result.findings]) == (there, ["refused"])


@pytest.mark.parametrize("option", ["per_process", "optimizer_sharding", "fully_sharded"])
def test_the_other_style_keeps_what_was_asked_for(option: str) -> None:
    asked: dict[str, Any] = {option: True}
    there = plain(**asked)
    exact = convert({PATH: there}, "cpu", style="exact")[PATH].code
    assert exact == convert({PATH: BEFORE}, "cpu", **asked)[PATH].code
    again = convert({PATH: exact}, "cpu", style="plain")[PATH].code
    assert lines({PATH: again}) == lines({PATH: there})


@pytest.mark.parametrize("option", ["optimizer_sharding", "fully_sharded"])
@pytest.mark.parametrize("target", ["xla", "horovod", "ignite"])
def test_what_a_target_does_not_divide_is_refused(option: str, target: str) -> None:
    asked: dict[str, Any] = {option: True}
    for there in (plain(**asked), convert({PATH: BEFORE}, "cpu", **asked)[PATH].code):
        result = convert({PATH: there}, target, style="plain")[PATH]
        assert (result.code, [each.severity for each in result.findings]) == (there, ["refused"])


@pytest.mark.parametrize("target", ["mpi", "xla", "ignite", "horovod"])
def test_what_starts_the_processes_gives_way_to_a_target_s_own_launcher(target: str) -> None:
    head, training = BEFORE.split("\n\n", 1)
    training = training.replace("8, 2))", "8, 2)).cuda()").replace("model(x)", "model(x.cuda())")
    training = training.replace("y)", "y.cuda())", 1).replace("== y)", "== y.cuda())")
    before = f"{head}\n\n\ndef main():\n{indent(training, '    ')}\n\nif __name__ == '__main__':\n    main()\n"
    there = plain("cuda", before, entry="spawn")
    assert "as torchrun" in there
    code = convert({PATH: there}, target)[PATH].code
    assert code != there and "torchrun(" not in code and 'init_process_group("nccl")' not in code
    edited = there.replace("DistributedDataParallel(model", "DistributedDataParallel(model, static_graph=True", 1)
    result = convert({PATH: edited}, target)[PATH]
    assert (result.code, [each.severity for each in result.findings]) == (edited, ["refused"])


def test_imports_in_another_order_are_the_same() -> None:
    there = plain().replace("import os\n", "", 1).replace("import torch\n", "import torch\nimport os\n", 1)
    again = convert({PATH: there}, "cpu", style="plain")[PATH]
    assert (again.code, again.reason) == (there, "already converted")


@pytest.mark.parametrize("target", ["cpu", "cuda", "xpu"])
def test_a_new_effect_is_guarded_where_the_file_is_converted(target: str) -> None:
    new = "    torch.save(optimizer.state_dict(), 'last.pt')\n"
    place = "    print(correct"
    edited = plain(target).replace(place, new + place, 1)
    again = convert({PATH: edited}, target, style="plain")[PATH].code
    guarded = f"    if dist.get_rank() == 0:\n    {new}"
    assert again == edited.replace(new, guarded)
    assert convert({PATH: again}, target, style="plain")[PATH].code == again
    assert convert({PATH: edited}, target)[PATH].code == edited  # only where the style is asked for
    assert convert({PATH: edited}, ONE_DEVICE)[PATH].code == BEFORE.replace(place, new + place, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DistributedDataParallel(model)", "DistributedDataParallel(model, static_graph=True)"),
        ("    print(correct", "    if dist.get_rank() == 0:\n        log(correct)\n    print(correct"),
    ],
)
def test_what_a_person_has_written_is_not_written_over(old: str, new: str) -> None:
    edited = plain().replace(old, new, 1).replace("dist.destroy", "torch.save(1, 'one.pt')\ndist.destroy", 1)
    assert new in edited
    result = convert({PATH: edited}, "cpu", style="plain")[PATH]
    assert result.code == edited
    [note] = [each for each in result.findings if each.severity == "note"]
    assert edited.splitlines()[note.line - 1].strip().removeprefix("ddp_model = ") in new


def test_code_by_hand_is_left_alone() -> None:
    text = (fixtures.ROOT.parent / "tests" / "e2e" / "by_hand" / "spawned.cuda.py").read_text()
    result = convert({PATH: text}, ONE_DEVICE)[PATH]
    assert (result.code, result.reason, result.findings) == (text, "not converted", ())
    assert convert({PATH: text}, "cuda", style="exact") == convert({PATH: text}, "cuda")


@pytest.mark.parametrize("style", ["", "plain"])
def test_what_is_asked_for_with_another_target_is_done_or_refused(style: str) -> None:
    there = plain("cuda")
    done = convert({PATH: there}, "cpu", style=style, per_process=True)[PATH]
    assert done.code == plain("cpu", per_process=True)
    saves = there.replace(
        "dist.destroy_process_group()", "torch.save(optimizer.state_dict(), 'o.pt')\ndist.destroy_process_group()"
    )
    refused = convert({PATH: saves}, "cpu", style=style, fully_sharded=True)[PATH]
    assert refused.code == saves and any(each.severity == "refused" for each in refused.findings)


def test_what_is_asked_of_exact_code_with_another_target_is_done_or_refused() -> None:
    there = convert({PATH: BEFORE}, "cuda")[PATH].code
    done = convert({PATH: there}, "cpu", per_process=True)[PATH].code
    assert done == convert({PATH: BEFORE}, "cpu", per_process=True)[PATH].code
    refused = convert({PATH: there}, "cpu", fully_sharded=True)[PATH]
    assert refused.code == there and [each.rule for each in refused.findings if each.severity == "refused"] == [
        "DDP128"
    ]
