"""A list to which each rank adds entries for samples of its own is not as long on each: what reads its length knows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ddpify_codemods.facts.flow.extended import lengthen, lengthening, of_samples, zipped_rows
from ddpify_codemods.facts.flow.held_values import local_runs
from ddpify_codemods.facts.flow.values import Items, Iteration, Loader, Value, of

from tests.codemods.checks import script_of
from tests.codemods.plain.test_followed import CE, EVALUATION, HEAD, LOOP, plain, refusals

LOOPED = LOOP.format(loss=CE, step="optimizer.step(); {adds}")
BEFORE = "kept, names, table = [], [str(place) for place in range(64)], {}\n"
PAIRS = "zip(y.tolist(), model(x).argmax(1).tolist())"
BY_SAMPLES = [
    "kept += [label + 1 for label in y.tolist()]",
    f"kept += [(label, guess) for label, guess in {PAIRS}]",
    "kept = [*kept, *y.tolist()]",
    "kept = kept + [label for label in y.tolist()]",
    "kept.extend(map(int, y))",
    "kept += names[:len(y)]",
    "kept[len(kept):] = y.tolist()",
]


def after_training(adds: str, shown: str = "len(kept)") -> str:
    result = plain(HEAD + BEFORE + LOOPED.format(adds=adds) + f"print({shown})\n")
    return "refused" if refusals(result) else result.code


@pytest.mark.parametrize("adds", BY_SAMPLES)
def test_the_length_after_training_is_that_of_all_or_is_refused(adds: str) -> None:
    code = after_training(adds)
    of_all = ("len(whole_batch(kept))", "len(kept) * dist", "map(int, whole_batch(y))")
    assert code == "refused" or any(each in code for each in of_all)
    more = after_training(f"{adds}; kept.append(0)")
    assert more == "refused" or of_all[2] in more


@pytest.mark.parametrize("adds", ["kept.append(loss.item())", "kept += [0]", "kept.extend([loss.item()])"])
def test_a_list_with_an_entry_for_each_batch_is_as_long_on_all_ranks(adds: str) -> None:
    assert "print(len(kept))" in after_training(adds)


@pytest.mark.parametrize(
    "adds", [*BY_SAMPLES, "kept.append(0)", "kept += [0]", "kept.append({'loss': 1})", "table[len(table)] = 0"]
)
def test_an_evaluation_whose_entries_are_counted_is_gone_through_as_a_whole(adds: str) -> None:
    training = LOOP.format(loss=CE, step="optimizer.step()")
    result = plain(HEAD + BEFORE + training + EVALUATION.format(adds=adds, shown="len(kept), len(table)"))
    assert refusals(result) or "sampler=range" not in result.code


def test_those_that_count_are_added_up() -> None:
    for counts in (f"len([1 for label, guess in {PAIRS} if label == guess])", "len([1 for label in y if label == 1])"):
        assert "sum_over_ranks(" in after_training(f"total += {counts}", "total")
    count = f"sum(1 for label, guess in {PAIRS} if label == guess)"
    assert "sum_over_ranks(" in after_training(f"total += {count}", "total")


def test_a_tuple_stays_one() -> None:
    assert "return tuple(total.tolist())" in after_training("both = (loss.item(), 1.5 * loss.item())", "both")
    adds = "both = tuple(a + b for a, b in zip(both, (loss.item(), 1.5 * loss.item())))"
    result = plain(HEAD + "both = (0.0, 0.0)\n" + LOOPED.format(adds=adds) + "print(both)\n")
    assert "return tuple(total.tolist())" in result.code and "\nboth = mean_over_ranks(both)\n" in result.code


def test_a_list_of_pairs_has_one_for_each_sample() -> None:
    rows, number = Value("rows"), Value("sum")
    pairs = zipped_rows([of(Iteration("zip", (rows, rows)))])
    assert pairs is not None and pairs.kind == "rows" and pairs.host
    others = [Iteration("zip", (rows, Value())), Iteration("enumerate", (rows,)), Iteration("as_is", (rows,))]
    assert all(zipped_rows([of(each)]) is None for each in others)
    assert zipped_rows([of(Iteration("zip", (rows, replace(rows, merged=True))))]) is None
    nested = Iteration("enumerate", (of(Iteration("zip", (rows, number, Value()))),))
    assert local_runs(of(nested)) == [rows, number] and not local_runs(rows)


def test_what_makes_a_list_longer() -> None:
    script = script_of("DataLoader(x)")
    loader = Loader(script.tree.body[0].value, script)  # type: ignore[attr-defined]
    loaders = frozenset({loader})
    rows, made = Value("rows", loaders), of(Items("list"))
    assert lengthening(rows) == lengthening(of(Iteration("zip", (Value(), rows)))) == loaders
    assert not lengthening(Value("rows_second", loaders)) and not lengthening(of(Items("list", {}, rows)))
    lengthen(made, loaders)
    assert lengthening(made) == loaders


def test_a_list_that_each_epoch_begins_is_brought_together_behind_them() -> None:
    one, other = (of(Items("list", {}, Value("rows"), extended=True, in_order=True)) for _ in range(2))
    both = replace(one, things=one.things | other.things)
    assert all(found is not None and found.kind == "rows" for found in map(of_samples, (one, both)))
    counts = of(Items("list", {}, Value("size"), extended=True, in_order=True))
    assert of_samples(replace(one, things=one.things | counts.things)) is None
