"""Loaders whose batch size, and more, comes from a dictionary that the script writes down."""

from __future__ import annotations

import pytest

from .test_followed import HEAD, plain, refusals, training

TRAINS = "train_loader = DataLoader(train_set, shuffle=True, **options)\n"
WHOLE = "train_loader = DataLoader(train_set, **options)\n"
EVALUATES = "test_loader = DataLoader(test_set, **options)\n"
_MADE = HEAD[HEAD.index("train_loader") : HEAD.index("model =")]


def with_loaders(lines: str, **changed: str) -> str:
    """A script that trains, with these loaders."""
    return training(**changed).replace(_MADE, lines)


@pytest.mark.parametrize("made", ["dict(batch_size=8, num_workers=0)", "{'batch_size': 8, 'num_workers': 0}"])
def test_an_evaluation_that_shares_it_keeps_its_batch_size(made: str) -> None:
    result = plain(with_loaders(f"options = {made}\n{TRAINS}{EVALUATES}"))
    assert not refusals(result)
    assert f"options = {made}\n" in result.code
    assert '**dict(options, batch_size=options["batch_size"] // dist.get_world_size())' in result.code
    assert result.code.count("// dist.get_world_size()") == 1


def test_an_evaluation_that_is_divided_leaves_it_alone() -> None:
    added = "for x, y in test_loader:\n    total += (model(x).argmax(1) == y).sum().item()\nprint(total)\n"
    result = plain(with_loaders(f"options = dict(batch_size=8)\n{TRAINS}{EVALUATES}", after=added))
    assert not refusals(result)
    assert "sampler=range(dist.get_rank(), len(test_set), dist.get_world_size())" in result.code
    assert "options[" not in result.code.replace('options["batch_size"] // ', "")


def test_loaders_of_training_alone_have_it_divided_there() -> None:
    others = "others = DataLoader(test_set, shuffle=True, **options)\n"
    source = with_loaders(f"options = dict(batch_size=8)\n{TRAINS}{others}").replace(
        "    for x, y in train_loader:", "    for x, y in [*train_loader, *others]:"
    )
    assert refusals(plain(source))  # which loader a batch is of
    second = "    for x, y in others:\n        F.cross_entropy(model(x), y).backward()\n        optimizer.step()\n"
    result = plain(with_loaders(f"options = dict(batch_size=8)\n{TRAINS}{others}", after=second))
    assert not refusals(result)
    assert result.code.count("// dist.get_world_size()") == 1
    assert "options = dict(batch_size=8 // dist.get_world_size())\n" in result.code


def test_one_that_is_made_before_the_process_group_is_left_alone() -> None:
    source = training().replace(_MADE, f"options = dict(batch_size=8)\n{TRAINS}")
    head, options, rest = source.partition("options = dict(batch_size=8)\n")
    body = "".join(f"    {line}" for line in rest.splitlines(keepends=True))
    result = plain(f'{head}{options}if __name__ == "__main__":\n{body}')
    assert not refusals(result)
    assert options in result.code and 'options["batch_size"] // dist.get_world_size()' in result.code


@pytest.mark.parametrize(
    "lines",
    [
        "options = dict(batch_size=8, collate_fn=len)\n" + TRAINS,
        "options = {'batch_size': 8, 'collate_fn': len}\ntrain_loader = DataLoader(train_set, **options)\n",
        "options = {'batch_size': 8, 'sampler': random}\ntrain_loader = DataLoader(train_set, **options)\n",
        "options = {'collate_fn': len}\n" + TRAINS.replace("**", "batch_size=8, **"),
        "options = dict(batch_size=8)\noptions['batch_size'] = 4\n" + TRAINS,
        "options = dict(batch_size=1)\n" + TRAINS,
        "options = dict(batch_size=None)\n" + TRAINS,
    ],
)
def test_what_it_hides_is_refused(lines: str) -> None:
    """A sampler of the script's own was replaced by DistributedSampler, without a word."""
    assert refusals(plain(with_loaders(lines)))


def test_tensors_as_long_as_its_batch_size() -> None:
    loss = "F.mse_loss(model(x), torch.ones(size, 3))"
    result = plain(with_loaders(f"size = 8\noptions = dict(batch_size=size)\n{TRAINS}", loss=loss))
    assert not refusals(result) and "torch.ones(size // dist.get_world_size(), 3)" in result.code
    step = "if len(x) == size:\n            optimizer.step()"
    result = plain(with_loaders(f"size = 8\noptions = dict(batch_size=size)\n{TRAINS}", step=step))
    assert not refusals(result) and "if len(x) == size // dist.get_world_size():" in result.code


SHARED = "options = {'batch_size': 8, 'shuffle': True}\n"


def test_an_order_that_loaders_share_is_left_to_the_samplers() -> None:
    hits = "for x, y in test_loader:\n    total += (model(x).argmax(1) == y).sum().item()\nprint(total)\n"
    lines = SHARED + "train_loader = DataLoader(train_set, **options)\n" + EVALUATES
    result = plain(with_loaders(lines + "others = DataLoader(test_set, **options)\n", after=hits))
    assert not refusals(result)
    assert SHARED in result.code
    assert "sampler=DistributedSampler(train_set, shuffle=True)" in result.code
    assert '**dict(options, batch_size=options["batch_size"] // dist.get_world_size(), shuffle=False)' in result.code
    assert "**dict(options, shuffle=False)" in result.code  # the evaluation
    assert "set_epoch(epoch)" in result.code


def test_an_order_that_the_run_decides() -> None:
    lines = "options = dict(batch_size=8, shuffle=len(train_set) > 9)\n"
    lines += "train_loader = DataLoader(train_set, **options)\n"
    result = plain(with_loaders(lines + "others = DataLoader(test_set, **options)\n"))
    assert not refusals(result)
    assert 'DistributedSampler(train_set, shuffle=options["shuffle"])' in result.code


def test_loaders_that_are_made_anew_in_each_epoch() -> None:
    source = with_loaders(SHARED).replace(
        "    for x, y in train_loader:", "    loader = DataLoader(train_set, **options)\n    for x, y in loader:"
    )
    result = plain(source)
    assert not refusals(result)
    assert "DistributedSampler(train_set, shuffle=True, seed=epoch)" in result.code


@pytest.mark.parametrize("others", ["others = DataLoader(test_set, **options)\n", ""])
@pytest.mark.parametrize("options", [SHARED, "options = dict(batch_size=8, shuffle=True)\n"])
def test_a_whole_evaluation_goes_in_the_same_order_on_all_ranks(options: str, others: str) -> None:
    """The last loader that a dictionary was handed to went on shuffling, each rank by a generator of its own."""
    shown = "for x, y in test_loader:\n    print(model(x).max(0), F.dropout(x))\n"
    lines = options + "train_loader = DataLoader(train_set, **options)\n" + EVALUATES
    result = plain(with_loaders(lines + others, after=shown))
    assert not refusals(result)
    assert "DataLoader(test_set, **dict(options, shuffle=False))\n" in result.code


def test_an_order_that_is_drawn_and_leaves_some_out_is_one_of_its_own() -> None:
    shown = "for x, y in test_loader:\n    print(model(x).max(0), F.dropout(x))\n"
    made = "train_loader = DataLoader(train_set, 8, shuffle=True)\n"
    options = "options = dict(batch_size=8, shuffle=True, drop_last=True)\n"
    result = plain(with_loaders(made + options + EVALUATES, after=shown))
    assert "DataLoader(test_set, **options)\n" in result.code
    assert any("in an order of its own: its numbers are rank 0's" in each.message for each in result.findings)


@pytest.mark.parametrize(
    "options",
    [
        "dict(batch_size=8, shuffle=False, sampler=random)",
        "dict(batch_size=8, shuffle=True, collate_fn=len)",
        "dict(batch_size=1, shuffle=True)",
        "dict(shuffle=True)",
        "dict(batch_size=8, shuffle=True)\noptions['shuffle'] = False",
        "dict(batch_size=8, shuffle=True) if random.random() < 2 else dict(batch_size=4, shuffle=False)",
    ],
)
def test_what_a_shared_order_hides_is_refused(options: str) -> None:
    lines = f"options = {options}\ntrain_loader = DataLoader(train_set, **options)\n{EVALUATES}"
    assert refusals(plain(with_loaders(lines + "others = DataLoader(test_set, **options)\n")))


def test_loaders_of_a_comprehension() -> None:
    """The dictionary was changed above it, where its variable has no value yet."""
    lines = SHARED + "loaders = [DataLoader(each, **options) for each in [train_set, test_set]]\n"
    source = with_loaders(lines).replace(
        "    for x, y in train_loader:", "  for loader in loaders:\n    for x, y in loader:"
    )
    result = plain(source)
    assert not refusals(result)
    assert "sampler=DistributedSampler(each, shuffle=True)" in result.code and SHARED in result.code


def test_phases_that_share_an_order() -> None:
    lines = SHARED + "sets = {'train': train_set, 'val': test_set}\n"
    lines += "loaders = {p: DataLoader(sets[p], **options) for p in ['train', 'val']}\n"
    hits = "for x, y in loaders['val']:\n    total += (model(x).argmax(1) == y).sum().item()\nprint(total)\n"
    result = plain(with_loaders(lines, after=hits).replace("in train_loader:", "in loaders['train']:"))
    assert not refusals(result)
    shard = "range(dist.get_rank(), len(sets[p]), dist.get_world_size())"
    assert f'sampler=DistributedSampler(sets[p], shuffle=True) if p == "train" else {shard}' in result.code
    assert "shuffle=False)" in result.code


@pytest.mark.parametrize(
    ("made", "loader", "told"),
    [
        ('{"batch_size": 8, "shuffle": True, "drop_last": True}', "**options", 'options["drop_last"]'),
        ('{"batch_size": 8, "shuffle": True, "drop_last": False}', "**options", ""),
        ('{"batch_size": 8, "shuffle": True}', "**options", ""),
        ("dict(batch_size=8, drop_last=True)", "shuffle=True, **options", 'options["drop_last"]'),
        ("dict(batch_size=8, shuffle=True)", "drop_last=True, **options", "True"),
        (
            '{"batch_size": 8, "shuffle": True}\nif total:\n    options["drop_last"] = True',
            "**options",
            'options.get("drop_last", False)',
        ),
    ],
)
def test_the_sampler_of_a_loader_that_drops_its_last_batch_drops_its_rest(made: str, loader: str, told: str) -> None:
    """Samples that came twice made one batch more than one process has."""
    lines = f"total = 0\noptions = {made}\ntrain_loader = DataLoader(train_set, {loader})\n"
    result = plain(with_loaders(lines))
    assert not refusals(result)
    assert f", drop_last={told})" in result.code if told else "drop_last=" not in result.code


@pytest.mark.parametrize("others", ["", "others = DataLoader(test_set, **options)\n"])
def test_options_that_there_are_only_with_a_gpu(others: str) -> None:
    """On CPUs batches have one sample each; a GPU has the same loaders as without the question."""
    lines = f"use_gpu = torch.cuda.is_available()\noptions = CHOSEN\n{WHOLE}{others}"
    source = with_loaders(lines, after="for x, y in others:\n    print(model(x))\n" if others else "")
    asked = source.replace("CHOSEN", "{'batch_size': 8, 'shuffle': True} if use_gpu else {}")
    result = plain(asked, "cuda")
    known = plain(source.replace("CHOSEN", "{'batch_size': 8, 'shuffle': True}"), "cuda")
    assert not refusals(result) and result.code != asked
    assert result.code.replace(" if use_gpu else {}", "") == known.code
    assert refusals(plain(asked))


@pytest.mark.parametrize(
    "chosen",
    [
        "{'batch_size': 8, 'shuffle': True} if use_gpu and len(test_set) else {}",
        "{'batch_size': 8, 'shuffle': True} if len(test_set) else {}",
        "{} if use_gpu else {'batch_size': 8, 'shuffle': True}",
        "{'shuffle': True} if use_gpu else {}",
    ],
)
def test_options_that_there_may_be_none_of(chosen: str) -> None:
    lines = f"use_gpu = torch.cuda.is_available()\noptions = {chosen}\n{WHOLE}"
    assert refusals(plain(with_loaders(lines + "others = DataLoader(test_set, **options)\n"), "cuda"))


WORKERS = """\
def workers(count):
    if count < 1:
        return {}
    return {"persistent_workers": True, "prefetch_factor": 2}


"""


def test_what_says_how_samples_are_loaded_may_be_hidden() -> None:
    result = plain(WORKERS + with_loaders(f"options = {{'batch_size': 8, **workers(2)}}\n{TRAINS}"))
    assert not refusals(result)
    assert "options = {'batch_size': 8 // dist.get_world_size(), **workers(2)}" in result.code


@pytest.mark.parametrize(
    "changed",
    [
        WORKERS.replace('"prefetch_factor": 2', '"batch_size": 4'),
        WORKERS.replace("return {}", "return other"),
        WORKERS.replace("return {}", "return {'drop_last': True}"),
        WORKERS.replace("return {}", "return {**workers(1)}"),
        WORKERS + "workers = dict\n",
        WORKERS + "from options import workers\n",
        WORKERS + "from options import *\n",
        "class Config:\n    def workers(self):\n        return {}\n\n\n" + WORKERS,
        "from options import workers\n\n\nclass Config:\n    def workers(self):\n        return {}\n\n\n",
        "try:\n    from options import workers\nexcept ImportError:\n    def workers(count):\n        return {}\n\n\n",
        "import functools\n\n\n@functools.cache\n" + WORKERS,
        WORKERS.replace("count < 1", "count < 1 or (yield)"),
    ],
)
def test_what_may_say_more_is_refused(changed: str) -> None:
    assert refusals(plain(changed + with_loaders(f"options = {{'batch_size': 8, **workers(2)}}\n{TRAINS}")))
