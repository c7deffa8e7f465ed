"""Numbers that a loop adds up, where they are read: within it, in branches and other loops after it, and in dicts."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from .test_followed import CE, HEAD, LOOP, plain, refusals, training

START = """\
    counts, losses, n, mean = {"hits": 0, "loss": 0.0}, [], 0, 0.0
    for x, y in train_loader:
"""
ADDS = """\
        counts["hits"] += (model(x).argmax(1) == y).sum().item()
        counts["loss"] += loss.item() * len(x)
        losses.append(loss.item())
        n += len(x)
"""
LOOPS = "bar = tqdm(train_loader)\n    for x, y in bar:"


def script(within: str = "", after: str = "", adds: str = ADDS) -> str:
    """A script that adds up numbers, and reads them in its loop and after it."""
    lines = [*[f"        {line}\n" for line in within.splitlines()], *[f"    {line}\n" for line in after.splitlines()]]
    loop = LOOP.format(loss=CE, step="optimizer.step()").replace("    for x, y in train_loader:\n", START)
    return HEAD + loop + adds + "".join(lines)


@pytest.mark.parametrize(
    ("read", "brought"),
    [
        ("print('{hits}'.format(**counts))", "**{key: sum_over_ranks(value) for key, value in counts.items()}"),
        ("print(f'{counts}')", "{({key: sum_over_ranks(value) for key, value in counts.items()})}"),
        ("print({k: v for k, v in counts.items()})", "{k: sum_over_ranks(v) for k, v in counts.items()}"),
        ("print(dict(counts, n=n))", "dict({key: sum_over_ranks(value) for key, value in counts.items()}, n=sum"),
        ("all = {**counts, 'n': n}\nprint(all['loss'])", "print(sum_over_ranks(all['loss']))"),
        ("all = {**counts}\nprint(all)", "print({key: sum_over_ranks(value) for key, value in all.items()})"),
        ("all = counts | {'n': n}\nprint(all['n'])", "print(sum_over_ranks(all['n']))"),
        ("all = {'epoch': epoch} | {'loss': loss.item()}\nprint(all['loss'])", "mean_over_ranks(all['loss'])"),
        (
            "all = {'loss': loss.item(), 'epoch': epoch}\nprint(all)",
            '{key: mean_over_ranks(value) if key == "loss" else value for key, value in all.items()}',
        ),
        (
            "all = {'net': model.state_dict(), 'loss': loss.item(), 'mae': loss.item()}\ntorch.save(all, 'a.pt')",
            '{key: mean_over_ranks(value) if key in ("loss", "mae") else value for key, value in all.items()}',
        ),
        ("all = {**counts, 'epoch': epoch}\nprint(all)", None),  # a sum of what all have alike
        ("all = {'loss': loss.item(), 'name': 'x'}\nprint(all)", None),  # a text has no mean
        ("print(losses.copy())", "mean_over_ranks(losses.copy())"),
        ("print(losses.index(loss.item()))", "mean_over_ranks(losses).index(mean_over_ranks(loss.item()))"),
        ("losses.sort()", None),
        ("print(loss.item() if n > 9 else None)", "mean_over_ranks(loss.item()) if sum_over_ranks(n) > 9 else None"),
        ("print(max(each for each in losses))", "max(mean_over_ranks(each) for each in losses)"),
        ("print({each for each in losses})", "{mean_over_ranks(each) for each in losses}"),
        ("print([each for each in losses])", "print(mean_over_ranks([each for each in losses]))"),
    ],
)
def test_what_is_read_within_the_loop(read: str, brought: str | None) -> None:
    """Each number by itself, where a dict, a set or what is made as it is asked holds them."""
    result = plain(script(within=read))
    assert bool(refusals(result)) is (brought is None)
    assert brought is None or brought in result.code


IS_SHARED = "isinstance(value, (int, str, type(None)))"


@pytest.mark.parametrize(
    ("within", "after", "test"),
    [
        (
            "all = {'loss': loss.item(), 'n': 1}\n"
            "if epoch % 2: all['more'] = loss.item()\nelse: all['more'] = 'none'\nprint(all)",
            "",
            f'mean_over_ranks(value) if key in ("loss", "more") and not {IS_SHARED} else value',
        ),
        ("print(last)\nlast['loss'] = loss.item()", "", f'if key == "loss" and not {IS_SHARED} else value'),
        (
            "print(last)\nlast = {'n': epoch, 'loss': loss.item()}",
            "",
            f'if key == "loss" and not {IS_SHARED} else value',
        ),
        (
            "last[f'loss {epoch}'] = loss.item()\nlast[f'note {epoch}'] = 'ok'",
            "print(last)",
            f'value if key == "n" or {IS_SHARED} else mean_over_ranks(value)',
        ),
    ],
)
def test_an_entry_that_is_a_ranks_own_at_times(within: str, after: str, test: str) -> None:
    """A text, or None, is not brought together."""
    first = "" if after else ", 'loss': 'n/a'"
    source = script(within, after, "").replace(START, f"    last = {{'n': epoch{first}}}\n{START}")
    found = plain(source)
    assert not refusals(found) and test in found.code
    assert "over_ranks" not in convert({Path("train.py"): found.code}, "none")[Path("train.py")].code


@pytest.mark.parametrize(
    "read",
    [
        "if epoch % 2:\n    print(n)\nprint(counts['loss'] / n)",
        "for each in losses:\n    print(each, n)\nprint(n)",
        "for key, value in counts.items():\n    print(key, value / n)",
        "while n > 0:\n    print(n)\n    break\nprint(n)",
        "try:\n    print(n)\nexcept ValueError:\n    pass\nprint(n)",
    ],
)
def test_what_is_read_in_a_branch_is_brought_together_before_it(read: str) -> None:
    result = plain(script(after=read))
    assert not refusals(result)
    assert result.code.count("n = sum_over_ranks(n)") == 1
    assert result.code.index("n = sum_over_ranks(n)") < result.code.index(read.splitlines()[0])


def test_what_one_branch_adds_up_is_not_brought_together_twice() -> None:
    loop = script(adds="        n += len(x)\n")
    body = loop[loop.index("    counts, ") :].replace("    counts", "        counts").replace("\n    ", "\n        ")
    source = loop[: loop.index("    counts, ")] + "    if epoch % 2:\n" + body.rstrip() + "\n    print(n)\n"
    assert "if epoch % 2:\n        counts" in source
    assert refusals(plain(source.replace(", n, mean =", ", m, mean =").replace("[], 0, 0.0", "[], 0, 0.0")))


@pytest.mark.parametrize("more", ["", "mean = mean + 0.5\n"])
def test_a_mean_that_goes_on_is_made_of_sums_that_are_brought_together_once(more: str) -> None:
    adds = f"mean = (n * mean + len(x) * loss.item()) / (n + len(x))\n{more}n += len(x)\n"
    result = plain(script(adds="".join(f"        {line}\n" for line in adds.splitlines()), after="print(mean)"))
    assert not refusals(result)
    assert "(sum_over_ranks(n * mean + len(x) * loss.item())) / (sum_over_ranks(n + len(x)))" in result.code


@pytest.mark.parametrize("other", ["losses", "list(losses)", "losses[:]", "losses.copy()"])
def test_lists_of_two_names_are_both_brought_together(other: str) -> None:
    result = plain(script(within=f"other = {other}", after="print(other)\nprint(losses)"))
    assert not refusals(result)
    assert "    losses = mean_over_ranks(losses)\n" in result.code
    assert "    other = mean_over_ranks(other)\n" in result.code


@pytest.mark.parametrize("adds", ["samples.extend(y.numpy())", "samples += y.tolist()"])
@pytest.mark.parametrize(
    ("read", "brought"),
    [
        ("print(max(samples))", "max(whole_batch(samples))"),
        ("print(samples[1])", "whole_batch(samples)[1]"),
        ("print(sorted(samples))", "sorted(whole_batch(samples))"),
        ("print(samples[:5])", None),
        ("first = samples[:5]\nprint(first)", None),
        ("print([each for each in samples if each])", None),
        ("for each in samples:\n    print(each)", None),
        ("samples.pop()\nprint(samples)", None),
        ("del samples[0]\nprint(samples)", None),
        ("samples[0] = 1\nprint(samples)", None),
    ],
)
def test_a_list_of_numbers_of_samples_is_that_of_all_ranks(adds: str, read: str, brought: str | None) -> None:
    """In the order of one process, as long as it is whole."""
    source = script(adds=f"        {adds}\n", after=read).replace("counts, losses", "samples, losses")
    result = plain(source.replace('{"hits": 0, "loss": 0.0}', "[]"))
    assert bool(refusals(result)) is (brought is None)
    assert brought is None or brought in result.code


def test_names_of_samples_are_no_numbers() -> None:
    source = script(adds="        samples.extend(y)\n", after="print(samples)").replace(
        "counts, losses", "samples, losses"
    )
    assert refusals(plain(source.replace('{"hits": 0, "loss": 0.0}', "[]")))


def test_a_part_of_the_number_of_samples_is_that_of_all_ranks() -> None:
    losses = 'F.cross_entropy(model(x), y, reduction="none")'
    source = script().replace(CE, f"{losses}.topk(int(0.5 * len(x)))[0].mean()")
    result = plain(source)
    assert not refusals(result)
    assert ".topk(int(0.5 * len(x) * dist.get_world_size()))" in result.code


@pytest.mark.parametrize(("given", "right"), [("other.parameters()", False), ("model.parameters()", True)])
def test_an_optimizer_gets_parameters_of_another_model(given: str, right: bool) -> None:
    other = f'other = nn.Linear(4, 4)\noptimizer.add_param_group({{"params": {given}}})\n'
    source = script().replace("total = 0.0\n", other).replace(CE, "F.cross_entropy(model(other(x)), y)")
    assert bool(refusals(plain(source))) is not right


def test_a_mean_that_is_rounded_down_is_that_of_all_ranks() -> None:
    """Each rank's own, rounded down, are less than the whole."""
    code = plain(training(step="optimizer.step(); total += int(100 * loss.item())", after="print(total)\n")).code
    assert "total += int(mean_over_ranks(100 * loss.item()))" in code


@pytest.mark.parametrize(
    ("shown", "brought"),
    [
        ("loss=loss.item()", "loss=mean_over_ranks(loss.item())"),
        ("{'loss': loss.item()}", "{'loss': mean_over_ranks(loss.item())}"),
        ("loss=f'{loss.item():.2f}'", "loss=f'{mean_over_ranks(loss.item()):.2f}'"),
        ("hits=(model(x).argmax(1) == y).sum().item()", "hits=sum_over_ranks((model(x).argmax(1) == y).sum().item())"),
        ("epoch=epoch, norm=x.norm().item()", "epoch=epoch, norm=x.norm().item()"),
    ],
)
def test_a_bar_of_training_shows_numbers_of_all_ranks(shown: str, brought: str) -> None:
    source = "from tqdm import tqdm\n" + script(f"bar.set_postfix({shown})").replace("for x, y in train_loader:", LOOPS)
    result = plain(source)
    assert not refusals(result)
    assert f"bar.set_postfix({brought})\n" in result.code


def test_a_bar_of_a_divided_evaluation_shows_numbers_of_rank_0() -> None:
    evaluation = (
        "hits = 0\nbar = tqdm(test_loader)\nfor x, y in bar:\n    hits += (model(x).argmax(1) == y).sum().item()\n"
    )
    shown = "    bar.set_postfix(hits=hits)\n"
    code = plain("from tqdm import tqdm\n" + training(after=f"{evaluation}{shown}print(hits)\n")).code
    assert f"{shown}hits = sum_over_ranks(hits)\n" in code


@pytest.mark.parametrize(
    ("loader", "shown", "said"),
    [
        ("", "score(y.squeeze().numpy())", True),
        ("", "score(y.squeeze(1).numpy())", False),
        ("", "score(y.numpy())", False),
        (", drop_last=True", "score(y.squeeze().numpy())", False),
    ],
)
def test_a_batch_of_one_sample_that_loses_its_dimension_is_said(loader: str, shown: str, said: bool) -> None:
    source = script(f"print({shown})").replace("shuffle=True)", f"shuffle=True{loader})", 1)
    result = plain(
        "from sklearn.metrics import accuracy_score as score\n" + source.replace(shown, f"{shown[:-1]}, [1])")
    )
    assert "whole_batch(y" in result.code
    assert any("squeeze() drops the dimension" in each.message for each in result.findings) is said


@pytest.mark.parametrize(
    ("size", "given", "shows", "checked"),
    [
        ("1", "per-process", "x.max()", True),
        ("options.batch_size", "per-process", "x.max()", True),
        ("8", "per-process", "x.max()", False),
        ("8", "global", "x.max()", False),
        ("1", "per-process", "x[0]", False),  # rank 0's
        ("1", "per-process", "loss.item()", False),
    ],
)
def test_samples_of_several_sizes_end_the_run_where_they_may_be_none_of_a_batch(
    size: str, given: str, shows: str, checked: bool
) -> None:
    """One process loads a picture at a time, of any size: ranks would wait for ever for what has another one."""
    parses = "import argparse\n\nparser = argparse.ArgumentParser()\n"
    parses += 'parser.add_argument("--batch_size", type=int, default=1)\noptions = parser.parse_args()\n'
    source = training(step=f"print({shows})").replace("batch_size=8", f"batch_size={size}", 1)
    code, path = f"{parses if 'options' in size else ''}{source}", Path("train.py")
    result = convert({path: code}, "cpu", style="plain", per_process=given == "per-process")[path]
    assert not refusals(result)
    assert ("if len(set(shapes)) > 1:" in result.code) is checked
    assert any("have to be of one size" in each.message for each in result.findings) is checked
    back = convert({path: result.code}, "none")[path].code
    assert "whole_batch" not in back and f"print({shows})" in back


@pytest.mark.parametrize(
    ("then", "gathers"), [("print(first)", False), ("print(first)\n    if first > 1: break", True)]
)
def test_the_first_sample_in_a_variable_that_is_printed_is_that_of_rank_0(then: str, gathers: bool) -> None:
    body = f"first = x[0].sum()\n{then}".replace("\n    ", "\n").replace("\n", "\n            ")
    lines = training(step=body).partition("for epoch")
    inside = "".join(lines[1:]).replace("\n            ", "\n        ").replace("\n", "\n    ")
    code = plain(f"{lines[0]}def main():\n    {inside}\nmain()\n").code
    assert ("whole_batch(x)[0]" in code) is gathers
