"""Loops over phases: each turn is followed by itself, so that each phase has its loader."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, plain, refusals

PHASES = """\
loaders = {{"train": train_loader, "val": test_loader}}
NAMES = ["train", "val"]
for epoch in range(2):
    for {turns}:
        model.train({trains})
        hits = 0
        for x, y in {loader}:
            with torch.set_grad_enabled({trains}):
                out = model(x)
                loss = F.cross_entropy(out, y)
            if {trains}:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            hits += (out.argmax(1) == y).sum().item()
        print(hits)
"""
TRAINS = "phase == 'train'"


@pytest.mark.parametrize(
    ("turns", "trains", "loader"),
    [
        ("phase in NAMES", TRAINS, "loaders[phase]"),
        ("phase in loaders", TRAINS, "loaders[phase]"),
        ("phase in loaders.keys()", TRAINS, "loaders[phase]"),
        ("phase, loader in loaders.items()", TRAINS, "loader"),
        ("phase, loader in (('train', train_loader), ('val', test_loader))", TRAINS, "loader"),
        ("training, loader in [(True, train_loader), (False, test_loader)]", "training", "loader"),
        ("phase, loader in zip(('train', 'val'), (train_loader, test_loader))", TRAINS, "loader"),
    ],
)
def test_a_loader_of_evaluation_gives_each_sample_once(turns: str, trains: str, loader: str) -> None:
    result = plain(HEAD + PHASES.format(turns=turns, trains=trains, loader=loader))
    assert not refusals(result)
    assert result.code.count("DistributedSampler(") == 1
    assert "sampler=range(dist.get_rank(), len(test_set), dist.get_world_size())" in result.code
    assert "train_loader.sampler.set_epoch(epoch)" in result.code


@pytest.mark.parametrize("changed", ["NAMES.append('val')", "more = NAMES\nmore.append('val')", "NAMES[0] = 'val'"])
def test_phases_that_the_program_changes_are_not_followed_one_by_one(changed: str) -> None:
    source = PHASES.format(turns="phase in NAMES", trains=TRAINS, loader="loaders[phase]")
    assert plain(HEAD + source.replace("for epoch", f"{changed}\nfor epoch", 1)).code.count("DistributedSampler(") != 1
    read = "print(len(NAMES), NAMES[0], 'val' in NAMES, list(NAMES))"
    assert plain(HEAD + source.replace("for epoch", f"{read}\nfor epoch", 1)).code.count("DistributedSampler(") == 1


@pytest.mark.parametrize("pairs", ["(('train', 0, 48), ('val', 48, 64))", "['train', 'val']", "NAMES"])
def test_loaders_that_are_made_for_phases(pairs: str) -> None:
    names, cut = ("phase, a, b", "x[a:b], y[a:b]") if "0" in pairs else ("phase", "x, y")
    head = HEAD[: HEAD.index("train_set")] + "x, y = torch.rand(64, 4), torch.randint(3, (64,))\n"
    head += "model = nn.Linear(4, 3)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    source = PHASES.format(turns="phase in NAMES", trains=TRAINS, loader="loaders[phase]").partition("\n")[2]
    made = f"DataLoader(TensorDataset({cut}), batch_size=8, shuffle=phase == 'train')"
    names_first, rest = source.partition("\n")[::2]
    result = plain(f"{head}{names_first}\nloaders = {{phase: {made} for {names} in {pairs}}}\n{rest}")
    assert not refusals(result)
    assert 'loaders["train"].sampler.set_epoch(epoch)' in result.code


OF_KEYS = (
    HEAD[: HEAD.index("train_loader")]
    + """\
import json

sets = {name: train_set for name in json.load(open("names.json"))}
loaders = {name: DataLoader(sets[name], batch_size=8, shuffle=True) for name in sets}
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in LOADER:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
)


def test_an_entry_of_a_dict_whose_keys_are_not_known_tells_its_sampler_the_epoch() -> None:
    result = plain(OF_KEYS.replace("LOADER", 'loaders["train"]'))
    assert not refusals(result)
    assert "loaders['train'].sampler.set_epoch(loaders['train'].sampler.epoch + 1)" in result.code


@pytest.mark.parametrize(
    "over", ['loaders["a"] if epoch else loaders["b"]', 'loaders[f"{epoch}"]', "loaders[model.name]"]
)
def test_an_entry_that_is_one_of_several_is_refused(over: str) -> None:
    assert refusals(plain(OF_KEYS.replace("LOADER", over)))
