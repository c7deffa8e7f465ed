"""Methods of values that the program does not define."""

from __future__ import annotations

from tests.codemods.facts.flow.followed import of_evaluation


def test_numbers_are_taken_out_of_tensors() -> None:
    for method in ("item()", "detach().item()", "cpu().item()"):
        found = of_evaluation(f"total += F.cross_entropy(model(x), y, reduction='sum').{method}")
        assert found.problems == () and "sharded" in found.status.values()
