"""What the functions of einops make of batches, by their patterns."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.einops import einops
from ddpify_codemods.facts.flow.values import Items, Value

ROWS, SECOND, SAME, SIZE = Value("rows"), Value("rows_second"), Value("same"), Value("size")


def pattern(text: str) -> Value:
    return Value("same", constant=text)


@pytest.mark.parametrize(
    ("name", "tensor", "text", "kind"),
    [
        ("rearrange", ROWS, "b n (h d) -> b h n d", "rows"),
        ("rearrange", ROWS, "b c h w -> b (h w) c", "rows"),
        ("rearrange", ROWS, "b n d -> (b n) d", "rows"),
        ("rearrange", ROWS, "(b n) d -> b n d", "rows"),
        ("rearrange", ROWS, "b n d -> n b d", "rows_second"),
        ("rearrange", ROWS, "b c ... -> b ... c", "rows"),
        ("rearrange", SECOND, "three b h n -> three b n h", "rows_second"),
        ("rearrange", ROWS, "b n d -> (n b) d", "unknown"),
        ("rearrange", ROWS, "b h w -> h w b", "rows_last"),
        ("reduce", ROWS, "b c h w -> b c", "rows"),
        ("reduce", ROWS, "b c -> c", "mean"),
        ("repeat", SAME, "1 1 d -> b 1 d", "rows"),
        ("repeat", SAME, "n d -> n b d", "rows_second"),
    ],
)
def test_the_pattern_says_where_the_samples_are(name: str, tensor: Value, text: str, kind: str) -> None:
    operation = [pattern("mean")] if name == "reduce" else []
    words = {"b": SIZE} if name == "repeat" or "(b n) d ->" in text else {"h": SAME}
    found = einops(name, [tensor, pattern(text), *operation], words)
    assert found is not None and found.kind == kind


def test_what_a_pattern_does_not_say() -> None:
    assert einops("rearrange", [ROWS, SAME], {}) is None
    assert einops("rearrange", [ROWS, pattern("(b pair) d -> b pair d")], {"pair": SAME}) is None
    assert einops("reduce", [ROWS, pattern("(b pair) d -> b d"), pattern("mean")], {"pair": SAME}) is None
    assert einops("rearrange", [SECOND, pattern("... b -> b ...")], {}) is None
    assert einops("repeat", [ROWS, pattern("b d -> (b r) d")], {"r": SAME}) is None
    assert einops("repeat", [SAME, pattern("d -> n b d")], {"b": SIZE, "n": SIZE}) is None


def test_packed_tensors_keep_their_samples() -> None:
    both = Value("same", things=frozenset({Items("list", {}, ROWS)}))
    packed = einops("pack", [both, pattern("b * d")], {})
    assert packed is not None
    (items,) = packed.only(Items)
    assert isinstance(items, Items) and [each.kind for each in items.all()] == ["rows", "same"]
    parts = einops("unpack", [ROWS, SAME, pattern("b * d")], {})
    assert parts is not None and parts.kind == "batch"
    assert einops("unpack", [ROWS, SAME, pattern("* d")], {}) is None
