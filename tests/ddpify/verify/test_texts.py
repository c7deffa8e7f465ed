"""What two runs printed: times and unstable numbers are left out, the rest is compared."""

from __future__ import annotations

import pytest

from ddpify.verify.texts import first_difference


@pytest.mark.parametrize(
    ("original", "ours"),
    [
        ("epoch 1 loss 0.1234 time 3.1s", "epoch 1 loss 0.1235 time 9.7s"),
        ("took 12.5 seconds", "took 31.2 seconds"),
        ("12:01:33 done", "12:04:59 done"),
        ("[00:03, 41.2it/s]", "[00:09, 11.7it/s]"),
        ("elapsed: 0.31", "elapsed: 0.93"),
        ("logs/cat_2026-11-23_23-15-50/a", "logs/cat_2026-11-23_23-16-02/a"),
        ("saved 20261123_231550.pt", "saved 20261124_000102.pt"),
        ("runs/Nov23_23-15-50_host", "runs/Nov24_00-01-02_host"),
        ("[0/8]\tTime 0.375 (0.371)\tData 0.013 (0.013)", "[0/8]\tTime 1.490 (1.602)\tData 0.021 (0.019)"),
    ],
)
def test_times_are_not_compared(original: str, ours: str) -> None:
    assert first_difference(original, ours, None, 1e-4)[0] is None


@pytest.mark.parametrize(
    ("original", "ours"),
    [
        ("loss 0.50", "loss 0.60"),
        ("step 3", "step 4"),
        ("a", "b"),
        ("a", "a\nb"),
        ("31 of 40 in 2s", "30 of 40 in 2s"),
        ("Acc10 99.50 Acc1 50.20", "Acc10 99.60 Acc1 50.20"),
        ("2026-11-23 23:15:50 loss 0.50", "2026-11-23 23:15:51 loss 0.60"),
        ("Time 0.375 (0.371)\tLoss 5.1 (5.1)", "Time 0.375 (0.371)\tLoss 5.1 (5.3)"),
    ],
)
def test_other_texts_differ(original: str, ours: str) -> None:
    found, _ = first_difference(original, ours, None, 1e-4)
    assert found is not None
    assert found.line == len(ours.splitlines())


def test_what_the_original_does_not_print_twice_is_left_out() -> None:
    found, left_out = first_difference("id 83\nloss 0.5", "id 99\nloss 0.5", "id 12\nloss 0.5", 1e-4)
    assert (found, left_out) == (None, 1)
    assert first_difference("id 83\nloss 0.50", "id 99\nloss 0.80", "id 12\nloss 0.50", 1e-4)[0] is not None


def test_amplified_rounding_may_be_ten_times_that_of_the_control() -> None:
    assert first_difference("loss 0.50000", "loss 0.50040", "loss 0.50005", 1e-5)[0] is None
    assert first_difference("loss 0.50000", "loss 0.50100", "loss 0.50005", 1e-5)[0] is not None
