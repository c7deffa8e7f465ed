"""The harness sees what it has to see, and nothing else."""

from __future__ import annotations

import io
from typing import Any

import numpy
import pytest
from PIL import Image

from ddpify.verify import compare
from ddpify.verify.runs import Record, Run, Step


def trace(*values: float) -> Any:
    array = numpy.array(values, dtype=numpy.float32)
    return array, float(numpy.linalg.norm(array)), ""


def sampled(*values: float, norm: float, digest: str = "of all") -> Any:
    return numpy.array(values, dtype=numpy.float32), norm, digest


def run(*steps: Step, stdout: str = "", stderr: str = "", files: dict[str, Any] | None = None, ranks: int = 1) -> Run:
    return Run(0, stdout, stderr, {rank: Record(list(steps)) for rank in range(ranks)}, files or {})


def step(*grads: Any, params: tuple[Any, ...] = (trace(1.0),), optimizer: int = 0) -> Step:
    return Step(optimizer, list(params), list(grads))


def differences(original: Run, many: Run) -> list[str]:
    return list(compare.equivalent(original, many, len(many.records), tolerance=1e-6))


def test_equal_runs_do_not_differ() -> None:
    one = run(step(trace(1.0, 2.0), None), stdout="loss 0.5\n", files={"a/": None, "a/log.txt": "1\n"})
    assert list(compare.identical(one, one)) == []
    assert differences(one, run(*one.steps(), stdout=one.stdout, files=dict(one.files), ranks=3)) == []


def test_gradient_beyond_the_tolerance_is_named_by_step_and_parameter() -> None:
    original = run(step(trace(1.0), trace(2.0)), step(trace(1.0), trace(2.0)))
    many = run(step(trace(1.0), trace(2.0)), step(trace(1.0), trace(2.1)), ranks=2)
    assert differences(original, many) == ["step 1: gradients differ, rel 4.5e-02 (first: gradient 1, rel 5.0e-02)"]


def test_rounding_is_within_the_tolerance_of_many_ranks_but_not_of_one() -> None:
    original, other = run(step(trace(1.0))), run(step(trace(1.0000001)))
    assert differences(original, other) == []
    assert list(compare.identical(original, other)) == ["step 0: gradient 0 of original and alone differ, rel 1.2e-07"]


def test_ranks_that_differ_by_a_bit_differ() -> None:
    many = Run(0, "", "", {0: Record([step(trace(1.0))]), 1: Record([step(trace(1.0000001))])}, {})
    assert differences(run(step(trace(1.0))), many) == ["step 0: gradient 0 of rank 0 and rank 1 differ, rel 1.2e-07"]


def test_missing_steps_are_counted() -> None:
    many = Run(0, "", "", {0: Record([step(trace(1.0))] * 2), 1: Record([step(trace(1.0))])}, {})
    assert "steps: original 2, ranks [2, 1]" in differences(run(*[step(trace(1.0))] * 2), many)


def test_rank_without_records_is_counted() -> None:
    many = Run(0, "", "", {0: Record([step(trace(1.0))])}, {})
    found = list(compare.equivalent(run(step(trace(1.0))), many, 2, 1e-6))
    assert "steps: original 1, ranks [1, 0]" in found


def test_zero_gradient_stands_for_an_absent_one_on_many_ranks_only() -> None:
    original, other = run(step(trace(1.0), None)), run(step(trace(1.0), trace(0.0)))
    assert differences(original, other) == []
    assert list(compare.identical(original, other)) == ["step 0: gradient 1 of original and alone differ, one has none"]


def test_large_tensor_is_told_apart_by_its_digest_and_its_norm() -> None:
    original = run(step(sampled(3.0, 4.0, norm=50.0)))
    assert list(compare.identical(original, run(step(sampled(3.0, 4.0, norm=50.0, digest="other")))))
    assert differences(original, run(step(sampled(3.0, 4.0, norm=50.0, digest="other")))) == []
    assert differences(original, run(step(sampled(3.0, 4.0, norm=51.0, digest="other"))))


def test_nan_equals_nan_only() -> None:
    original = run(step(trace(float("nan"), 1.0)))
    assert differences(original, original) == []
    assert differences(original, run(step(trace(2.0, 1.0))))
    assert differences(run(step(trace(2.0, 1.0))), original)


@pytest.mark.parametrize(
    ("original", "ours"),
    [
        ("loss 0.1234", "loss 0.1235"),
        ("loss 12345.678", "loss 12345.9"),
        ("loss -0.0000", "loss 0.0000"),
        ("err  9.9999", "err 10.0000"),
        ("lr 1e-05", "lr 1.00001e-05"),
        ("nan", "nan"),
    ],
)
def test_printed_numbers_may_differ_in_their_last_digit(original: str, ours: str) -> None:
    assert differences(run(stdout=original), run(stdout=ours)) == []


@pytest.mark.parametrize(
    ("original", "ours"),
    [
        ("epoch 3", "epoch 4"),
        ("loss 0.1234", "loss 0.1244"),
        ("loss 0.12", "cost 0.12"),
        ("loss 0.12", "loss nan"),
        ("one", "one\none"),
        ("one\ntwo", "one"),
        ("Conv2d", "Conv3d"),
    ],
)
def test_other_texts_differ(original: str, ours: str) -> None:
    assert differences(run(stdout=original), run(stdout=ours))


def test_log_line_on_stderr_twice_differs() -> None:
    original = run(stderr="INFO epoch 1\nsome Warning: slow\n")
    assert differences(original, run(stderr="a launcher's own line\nINFO epoch 1\n")) == []
    assert differences(original, run(stderr="INFO epoch 1\nINFO epoch 1\n"))


def test_warnings_of_several_lines_are_passed_over() -> None:
    warning = (
        "/tmp/train.py:3: UserWarning: Converting a tensor.\nUse detach(). (Triggered at x.cpp:8.)\n  float(loss)\n"
    )
    original = run(stderr=f"INFO epoch 1\n{warning}INFO epoch 2\n")
    assert differences(original, run(stderr="INFO epoch 1\nINFO epoch 2\n")) == []
    assert differences(original, run(stderr=f"INFO epoch 1\n{warning}"))


def test_bar_on_stderr_twice_differs_and_a_bar_drawn_again_does_not() -> None:
    bar = "\rtrain:  50%|##  | 1/2 [00:00<00:00, 9.1it/s]\rtrain: 100%|####| 2/2 [00:01<00:00, 9.9it/s]\n"
    again = bar.replace("\n", "\rtrain: 100%|####| 2/2 [00:02<00:00, 1.9it/s]\n")
    assert differences(run(stderr=bar), run(stderr=again)) == []
    assert differences(run(stderr=bar), run(stderr=bar + bar))


def test_names_of_files_and_folders_are_compared() -> None:
    original = run(files={"out/": None, "out/a.txt": "1"})
    assert differences(original, run(files={"out/": None})) == ["files missing: ['out/a.txt']"]
    assert differences(original, run(files={**original.files, "b/": None})) == ["files extra: ['b/']"]


@pytest.mark.parametrize("format", ["PNG", "PPM", "BMP"])
def test_images_may_differ_by_one_grey(format: str) -> None:
    def image(grey: int, width: int = 8) -> Run:
        stream = io.BytesIO()
        Image.fromarray(numpy.full((8, width, 3), grey, numpy.uint8)).save(stream, format)
        return run(files={"sample": stream.getvalue()})

    assert differences(image(100), image(101)) == []
    assert differences(image(100), image(102)) == ["file sample differs"]
    assert differences(image(100), image(100, width=9)) == ["file sample differs"]


def test_checkpoints_are_compared_as_a_whole_and_moments_by_kind() -> None:
    def checkpoint(weight: float, noise: float, moment: float) -> dict[str, Any]:
        tensors = {("model", "w"): weight, ("model", "b"): noise, ("optimizer", 0, "exp_avg_sq"): moment}
        return {"a.pt": {path: numpy.array([value]) for path, value in tensors.items()}}

    original = run(files=checkpoint(1.0, 1e-12, 1e-6))
    assert differences(original, run(files=checkpoint(1.0 + 1e-7, 2e-12, 1e-6))) == []
    assert differences(original, run(files=checkpoint(1.0 + 1e-5, 1e-12, 1e-6)))
    assert differences(original, run(files=checkpoint(1.0, 1e-12, 1.1e-6)))


def test_checkpoint_with_other_keys_or_that_does_not_load_differs() -> None:
    original = run(files={"a.pt": {("w",): numpy.ones(2)}})
    assert differences(original, run(files={"a.pt": {("module.w",): numpy.ones(2)}}))
    assert differences(original, run(files={"a.pt": "does not load: ModuleNotFoundError"}))


def test_ranks_that_each_compute_everything_are_named() -> None:
    shared = Step(0, [trace(1.0)], [trace(1.0)], forwards=1)
    assert list(compare.divided(Run(0, "", "", {0: Record([shared]), 1: Record([shared])}, {}))) == []
    assert list(compare.divided(run(step(trace(1.0)), ranks=2))) == ["nothing was divided on ranks [0, 1]"]
