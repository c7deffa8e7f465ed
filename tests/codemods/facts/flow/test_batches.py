"""Which batches lie one after another in a tensor, and where it is cut."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.batches import (
    alike,
    are_paired,
    between,
    counted,
    cut_apart,
    in_a_row,
    in_front,
    passed_on,
)
from ddpify_codemods.facts.flow.values import Items, Loader, Value, of

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import reasons, undivided


def loader() -> Loader:
    script = script_of("DataLoader(data)")
    return Loader(next(script.find(ast.Call)), script)


ONE, OTHER = loader(), loader()
BATCH, BATCH_OF_OTHER = Value("batch", batches=(ONE,)), Value("batch", batches=(OTHER,))
THREE = Value("rows", batches=(ONE, OTHER, OTHER))
TWO = Value("rows", batches=(OTHER, OTHER))
SIZE, SIZE_OF_OTHER = (Value("size", batches=(each,), host=True) for each in (ONE, OTHER))


def number(constant: int) -> Value:
    return Value(constant=constant, host=True)


def parts(value: Value | None) -> list[tuple[Loader, ...]]:
    """The batches of each part of a tuple."""
    return [
        each.batches for thing in value.things if isinstance(thing, Items) for each in thing.all()
    ] if value else []  # fmt: skip


def test_tensors_one_after_another() -> None:
    assert in_a_row([BATCH, TWO]) == (ONE, OTHER, OTHER)
    assert in_a_row([BATCH, Value("rows")]) == ()
    assert alike([BATCH, Value("rows", batches=(ONE,)), number(1)]) == (ONE,)
    assert alike([BATCH, BATCH_OF_OTHER]) == ()


def test_cuts_between_batches() -> None:
    assert parts(cut_apart("chunk", TWO, [number(2)])) == [(OTHER,), (OTHER,)]
    assert parts(cut_apart("split", TWO, [SIZE_OF_OTHER])) == [(OTHER,), (OTHER,)]
    sizes = of(Items("tuple", {0: SIZE, 1: Value("size", batches=(OTHER, OTHER))}))
    assert parts(cut_apart("split", THREE, [sizes])) == [(ONE,), (OTHER, OTHER)]
    assert parts(cut_apart("split", TWO, [of(Items("list", {}, SIZE_OF_OTHER))])) == [(OTHER,), (OTHER,)]


@pytest.mark.parametrize(
    ("name", "value", "size"),
    [
        ("chunk", THREE, number(3)),  # batches of two loaders, which are not as large
        ("chunk", TWO, number(3)),
        ("chunk", BATCH, number(2)),
        ("split", TWO, SIZE),
        ("split", TWO, number(4)),
        ("split", THREE, SIZE_OF_OTHER),
        ("tensor_split", TWO, number(2)),
        ("split", Value("rows"), SIZE),
        ("chunk", Value("picked", batches=(OTHER, OTHER)), number(2)),
    ],
)
def test_cuts_that_may_go_through_a_batch(name: str, value: Value, size: Value) -> None:
    assert cut_apart(name, value, [size]) is None


def test_slices_of_whole_batches() -> None:
    found = [between(THREE, None, SIZE), between(THREE, SIZE, None)]
    assert [each and each.batches for each in found] == [(ONE,), (OTHER, OTHER)]
    assert between(THREE, None, SIZE_OF_OTHER) is None
    assert between(THREE, None, number(8)) is None
    assert between(THREE, SIZE, SIZE) is None


def test_a_dimension_for_the_batches() -> None:
    found = in_front(TWO, [number(2), SIZE_OF_OTHER, number(-1)])
    assert found is not None and (found.kind, found.batches) == ("rows_second", (OTHER,))
    assert in_front(TWO, [number(2), number(-1)]) is None
    assert in_front(THREE, [number(3), SIZE]) is None
    assert are_paired(TWO, SIZE_OF_OTHER)
    assert not are_paired(TWO, Value("size", batches=(OTHER, OTHER))) and not are_paired(BATCH, SIZE)


def test_numbers_of_samples() -> None:
    assert counted(ast.Mult(), number(2), SIZE) == (ONE, ONE)
    assert counted(ast.Add(), SIZE, SIZE_OF_OTHER) == (ONE, OTHER)
    assert counted(ast.FloorDiv(), Value("size", batches=(ONE, ONE)), number(2)) == (ONE,)
    assert counted(ast.FloorDiv(), SIZE, number(2)) == ()
    assert counted(ast.Mult(), SIZE, SIZE) == ()
    assert counted(ast.Mult(), SIZE, number(10**12)) == ()  # a number of pixels, not of batches


def test_a_network_gives_back_as_many_samples() -> None:
    found = passed_on(of(Items("tuple", {0: Value("rows"), 1: Value("mean"), 2: BATCH})), [TWO, number(1)])
    assert parts(found) == [(OTHER, OTHER), (), (ONE,)]


TWICE = """\
for x, y in train_loader:
    n = len(y)
    out = model(torch.cat([x, 2 * x]))
    {cut}
    loss = F.mse_loss(a, b)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "cut",
    [
        "a, b = out.chunk(2)",
        "a, b = out[:n], out[n:]",
        "a, b = out[: len(out) // 2], out[len(out) // 2 :]",
        "a, b = torch.split(out, n)",
        "a, b = torch.split(out, [n, n], dim=0)",
        "a, b = out.view(2, n, -1)",
        "a, b = out.unflatten(0, (2, n))",
        "a, b = F.softmax(out, dim=1).to('cpu').view(2 * n, 3).chunk(2)",
    ],
)
def test_two_batches_that_a_model_computes_at_once(cut: str) -> None:
    assert undivided(TWICE.format(cut=cut)) == []


@pytest.mark.parametrize("cut", ["a, b = out.view(n, 2, -1).unbind(1)", "a, b, _, _ = out.chunk(4)"])
def test_cuts_through_batches_are_made_of_the_samples_of_all_ranks(cut: str) -> None:
    assert undivided(TWICE.format(cut=cut)) != []


def test_how_many_batches_there_are_is_not_guessed() -> None:
    source = TWICE.replace("torch.cat([x, 2 * x])", "torch.cat([x + i for i in range(3)])")
    assert undivided(source.format(cut="a, b = out.chunk(2)")) != []
    assert reasons(TWICE.format(cut="a, b = out[:8], out[8:]")) != []


@pytest.mark.parametrize(
    "joined",
    ["torch.cat([*[x], 2 * x])", "torch.cat([x] * 2)", "torch.cat([x, 2 * x])[y.repeat(2) > 0]"],
)
def test_what_is_not_counted_is_not_cut(joined: str) -> None:
    source = TWICE.replace("torch.cat([x, 2 * x])", joined)
    assert undivided(source.format(cut="a, b = out.chunk(2)")) != []


@pytest.mark.parametrize(
    ("last", "is_divided"), [("", False), (", drop_last=True", True), (", drop_last=False", False)]
)
def test_the_batch_size_is_that_of_all_batches_if_none_is_smaller(last: str, is_divided: bool) -> None:
    made = f"size = 8\ntrain_loader = DataLoader(train_set, batch_size=size, shuffle=True{last})\n"
    found = undivided(made + TWICE.format(cut="a, b = out.view(2, size, -1)"))
    assert (found == []) == is_divided
