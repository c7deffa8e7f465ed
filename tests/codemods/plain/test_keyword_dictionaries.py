"""Loaders whose batch size, and more, comes from a dictionary that the script writes down."""

from __future__ import annotations

import pytest

from .test_followed import HEAD, plain, refusals, training

TRAINS = "train_loader = DataLoader(train_set, shuffle=True, **options)\n"
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
