"""What counts as rounding, and what does not."""

from __future__ import annotations

from typing import Any

import numpy

from ddpify.verify.runs import Batch, Record, Run, Step
from ddpify.verify.verdict import Verdict, judge

START = numpy.linspace(1.0, 2.0, 8, dtype=numpy.float32)


def trace(values: Any) -> Any:
    return values.astype(numpy.float32), float(numpy.linalg.norm(values)), ""


def run(*sizes: float, ranks: int = 1, stdout: str = "", files: dict[str, Any] | None = None) -> Run:
    """Steps whose parameters are off by these relative sizes, from one tenth of that in their gradients."""
    steps = [Step(0, [trace(START * (1 + size))], [trace(START * (1 + size / 10))]) for size in sizes]
    records = {rank: Record(list(steps), [Batch(1, (0, 1))], {0: ["Net.weight"]}) for rank in range(ranks)}
    return Run(0, stdout, "", records, files or {})


def verdict(original: Run, other: Run, control: Run) -> Verdict:
    return judge(original, other, 2, "", lambda number: control)


def test_rounding_needs_no_control_run() -> None:
    def control(number: int) -> Run:
        raise AssertionError

    found = judge(run(0, 0), run(1e-7, 2e-7, ranks=2), 2, "", control)
    assert not found.differences
    assert not found.amplified


def test_what_rounding_does_to_the_original_itself_is_allowed_ten_times() -> None:
    original, control = run(0, 0, 0), run(0, 1e-5, 1e-3)
    found = verdict(original, run(0, 8e-5, 8e-3, ranks=2), control)
    assert not found.differences
    assert found.amplified
    assert "from step 2 on beyond the tolerance" in dict(found.equal)["parameters"]


def test_a_file_may_differ_by_what_the_parameters_may() -> None:
    """By ten times what rounding made of the file in the control run."""

    def trained(size: float, file: float, ranks: int = 1) -> Run:
        return run(0, 0, size, ranks=ranks, files={"model.pt": {("fc.weight",): START * (1 + file)}})

    original, control = trained(0, 0), trained(1e-4, 9e-7)
    found = verdict(original, trained(8e-4, 8e-6, ranks=2), control)
    assert not found.differences and found.amplified
    (difference,) = verdict(original, trained(8e-4, 2e-5, ranks=2), control).differences
    assert difference.what.startswith("file model.pt")
    (difference,) = verdict(original, trained(0, 8e-6, ranks=2), control).differences
    assert difference.what.startswith("file model.pt"), "nothing is amplified"


def test_more_than_that_is_a_difference_at_its_step() -> None:
    original, control = run(0, 0, 0), run(0, 1e-5, 1e-3)
    (difference,) = verdict(original, run(0, 8e-5, 2e-2, ranks=2), control).differences
    assert difference.what.startswith("step 3: gradients, relative difference 2.0e-03 over all")
    assert "Net.weight" in difference.what


def test_a_step_that_rounding_turns_over_in_some_runs_only_needs_several_control_runs() -> None:
    original, other = run(0, 0, 0), run(0, 0, 3e-3, ranks=2)
    found = judge(original, other, 2, "", lambda number: run(0, 0, 3e-3 if number == 3 else 1e-7))
    assert found.amplified
    assert not found.differences
    found = judge(original, other, 2, "", lambda number: run(0, 3e-3 * number, 1e-7))
    assert found.amplified, "earlier steps amplify"
    assert judge(original, other, 2, "", lambda number: run(0, 0, 1e-7)).differences


def test_a_large_first_difference_needs_no_control_run() -> None:
    found = judge(run(0, 0), run(0, 0.8, ranks=2), 2, "", lambda number: run())
    assert found.differences[0].what.startswith("step 2: gradients")


def test_ranks_that_differ_are_named_before_the_original() -> None:
    other = run(0, 0, ranks=2)
    other.records[1].steps[:] = run(0, 1e-5).steps()
    found = verdict(run(0, 0), other, run(0, 0))
    assert "step 2: the ranks have different gradients of Net.weight" in found.differences[0].what


def test_a_file_that_is_named_after_a_time_and_a_process_has_another_name_in_each_run() -> None:
    def named(*numbers: int) -> Run:
        return run(0, ranks=2, files={f"runs/events.{number}.host": b"" for number in numbers} | {"a1": b"1"})

    assert not verdict(named(1), named(2), named(3)).differences
    (difference,) = verdict(named(1), named(2, 4), named(3)).differences  # one of each rank
    assert difference.what == "files extra: runs/events.2.host"
    (difference,) = verdict(named(1), named(2), named(1)).differences
    assert difference.what == "files missing: runs/events.1.host"
