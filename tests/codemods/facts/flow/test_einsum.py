"""What torch.einsum makes of batches, by its equation."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.einsum import einsum
from ddpify_codemods.facts.flow.values import Value

ROWS, SAME = Value("rows"), Value("same")


@pytest.mark.parametrize(
    ("equation", "operands", "kind"),
    [
        ("bij,bjk->bik", (ROWS, ROWS), "rows"),
        ("bi,ij->bj", (ROWS, SAME), "rows"),
        ("bi,bi->", (ROWS, ROWS), "sum"),
        ("bi,ij->jb", (ROWS, SAME), "rows_second"),
        ("bi,ci->bc", (ROWS, ROWS), "unknown"),
    ],
)
def test_the_equation_says_what_becomes_of_the_samples(equation: str, operands: tuple[Value, ...], kind: str) -> None:
    found = einsum(equation, operands)
    assert found is not None and found.kind == kind


def test_an_equation_that_does_not_say_it() -> None:
    assert einsum("bi,bi", (ROWS, ROWS)) is None
    assert einsum("...i->...", (ROWS,)) is None
    assert einsum(None, (ROWS,)) is None
    assert einsum("bi,ij->bj", (Value("unknown"), SAME)) is None
