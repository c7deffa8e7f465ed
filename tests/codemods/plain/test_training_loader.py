"""Training loaders draw this rank's samples, in another order in each epoch (DDP603)."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, EVALUATION, HEAD, LOOP, plain, refusals


@pytest.mark.parametrize(
    ("train", "test", "shuffle"),
    [("True", "False", "shuffle"), ("'train'", "'test'", "shuffle == 'train'"), ("False", "True", "shuffle")],
)
def test_one_function_makes_the_loaders_of_training_and_of_an_evaluation(train: str, test: str, shuffle: str) -> None:
    """The evaluation got the training's sampler, which draws some samples twice (D6): where shuffle does not tell them
    apart, it takes its samples without that (DDP620)."""
    made = "train_loader = DataLoader(train_set, batch_size=8, shuffle=True)\n"
    made += "test_loader = DataLoader(test_set, batch_size=8)\n"
    function = "def loader(data, shuffle):\n"
    function += f"    return DataLoader(data, batch_size=8, shuffle={shuffle})\n"
    function += f"train_loader = loader(train_set, {train})\ntest_loader = loader(test_set, {test})\n"
    text = HEAD.replace(made, function) + LOOP.format(loss=CE, step="optimizer.step()")
    text += EVALUATION.format(adds="total += F.cross_entropy(model(x), y, reduction='sum').item()", shown="total / 30")
    result = plain(text)
    if train == "False":
        assert not refusals(result)
        assert "sampler=DistributedSampler(data, shuffle=shuffle)" in result.code
        assert "for x, y in each_sample_once(test_loader):" in result.code
        return
    share = "range(dist.get_rank(), len(data), dist.get_world_size())"
    test_of = f"({shuffle})" if "=" in shuffle else shuffle
    assert f"DistributedSampler(data) if {test_of} else {share}" in result.code
    assert result.code.count("set_epoch(") == 1


def test_a_loader_that_is_made_in_each_epoch_needs_no_set_epoch() -> None:
    loop = "for epoch in range(3):\n    loader = DataLoader(train_set, batch_size=8, shuffle=True)\n"
    loop += "    for x, y in loader:\n        optimizer.zero_grad()\n        F.cross_entropy(model(x), y).backward()\n"
    result = plain(HEAD + loop + "        optimizer.step()\n")
    assert not refusals(result) and "shuffle=True, seed=epoch)" in result.code


def test_loaders_whose_batches_meet_draw_in_orders_of_their_own() -> None:
    """With one seed, the same samples of two data sets of one length would meet in each epoch."""
    other = "other_loader = DataLoader(train_set, batch_size=8, shuffle=True)\n"
    loop = LOOP.format(loss=f"{CE} + F.cross_entropy(model(u), v)", step="optimizer.step()")
    together = loop.replace("for x, y in train_loader:", "for (x, y), (u, v) in zip(train_loader, other_loader):")
    result = plain(HEAD + other + together)
    assert (
        not refusals(result) and result.code.count("shuffle=True)") == result.code.count("shuffle=True, seed=1)") == 1
    )
    in_turn = LOOP.format(loss=CE, step="optimizer.step()")
    result = plain(HEAD + other + in_turn + in_turn.replace("train_loader", "other_loader"))
    assert not refusals(result) and result.code.count("shuffle=True)") == 2


PHASES = """\
sets = {"train": train_set, "val": test_set}
loaders = {phase: DataLoader(sets[phase], batch_size=8, shuffle=True) for phase in ["train", "val"]}
for phase in ["train", "val"]:
    for x, y in loaders[phase]:
        loss = F.cross_entropy(model(x), y)
        if phase == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


def test_the_key_in_a_dict_tells_the_loaders_apart() -> None:
    result = plain(HEAD + PHASES)
    assert not refusals(result)
    share = "range(dist.get_rank(), len(sets[phase]), dist.get_world_size())"
    assert f'DistributedSampler(sets[phase], shuffle=True) if phase == "train" else {share}' in result.code


def test_a_key_that_does_not_tell_the_loaders_apart() -> None:
    two = PHASES.replace('["train", "val"]:\n    for', '["train", "val", "more"]:\n    for')
    two = two.replace('for phase in ["train", "val"]}', 'for phase in ["train", "val", "more"]}').replace("==", "!=")
    assert refusals(plain(HEAD + two.replace('{"train"', '{"more": test_set, "train"')))


def test_the_sampler_of_one_of_several_loaders_is_told_the_epoch() -> None:
    """`train_loader` is made in one of several branches, and given to the function that trains."""
    made = "train_loader = DataLoader(train_set, batch_size=8, shuffle=True)"
    several = f"if total > 1:\n    {made}\nelse:\n    {made.replace('=8', '=4')}"
    function = "def train(train_loader):\n" + "".join(f"    {line}\n" for line in LOOP.splitlines()[1:])
    source = HEAD.replace(made, several) + function.format(loss=CE, step="optimizer.step()")
    code = plain(source + "for epoch in range(3):\n    train(train_loader)\n").code
    assert "for epoch in range(3):\n    train_loader.sampler.set_epoch(epoch)\n    train(train_loader)\n" in code


@pytest.mark.parametrize("order", ["True", "False"])
def test_the_order_of_a_loader_is_given_by_its_place(order: str) -> None:
    source = HEAD.replace("batch_size=8, shuffle=True", f"8, {order}").replace(
        "test_set, batch_size=8", "test_set, 8, True"
    )
    result = plain(
        source
        + LOOP.format(loss=CE, step="optimizer.step()")
        + EVALUATION.format(adds="total += len(x)", shown="total")
    )
    assert not refusals(result)
    assert f"8 // dist.get_world_size(),\n    sampler=DistributedSampler(train_set, shuffle={order})" in result.code
    assert "    8,\n    sampler=range(dist.get_rank(), len(test_set), dist.get_world_size())" in result.code


def test_batches_of_an_evaluation_that_stays_whole_are_as_large_as_they_were() -> None:
    made = "DataLoader(sets[phase], batch_size=8, shuffle={})"
    loop = """\
for phase in ["train", "val"]:
    for x, y in loaders[phase]:
        loss = F.cross_entropy(model(x), y)
        if phase == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            print(loss.item())
"""
    head = HEAD[: HEAD.index("train_loader")] + 'sets = {"train": train_set, "val": test_set}\n'
    head += "model = nn.Linear(4, 3)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    for order in ('phase == "train"', "True"):
        phases = f'loaders = {{phase: {made.format(order)} for phase in ["train", "val"]}}\n'
        result = plain(head + phases + loop)
        assert not refusals(result)
        assert 'batch_size=8 // dist.get_world_size() if phase == "train" else 8' in result.code


@pytest.mark.parametrize(
    ("size", "loader"),
    [
        ("len(train_set)", "DataLoader(train_set, batch_size={}, shuffle=True)"),
        ("len(train_set)", "DataLoader(train_set, {}, True, drop_last=True)"),
        ("n", "DataLoader(train_set, batch_size={})"),
        ("x_all.shape[0]", "DataLoader(train_set, batch_size={}, shuffle=True)"),
    ],
)
def test_one_batch_of_all_samples_leaves_none_over(size: str, loader: str) -> None:
    """38 // 3 = 12 of 13 samples for each rank made a second batch of one, or left samples out."""
    made = "n = len(train_set)\ntrain_loader = " + loader.format(size) + "\n"
    head = HEAD.replace("train_loader = DataLoader(train_set, batch_size=8, shuffle=True)\n", made)
    head = head.replace("TensorDataset(torch.rand(64, 4)", "TensorDataset(x_all", 1)
    head = head.replace("train_set =", "x_all = torch.rand(38, 4)\ntrain_set =", 1).replace("(3, (64,))", "(3, (38,))")
    result = plain(head + LOOP.format(loss=CE, step="optimizer.step()"))
    assert not refusals(result) and f"-(-{size} // dist.get_world_size())" in result.code
    assert "shuffle=True, drop_last=True)" not in result.code  # of the sampler, which would leave out samples
    said = next(each.message for each in result.findings if each.rule == "DDP611")
    assert "is rounded up" in said and "rounded down" not in said and "up to W - 1 of them come twice" in said


@pytest.mark.parametrize("drops", [True, False])
def test_one_batch_of_all_that_is_drawn_is_full_on_each_rank(drops: bool) -> None:
    """Rounded up, 38 // 3 = 12 samples that are drawn for each rank were no batch of 13."""
    line = "train_loader = DataLoader(train_set, batch_size=8, shuffle=True)\n"
    sampler = "torch.utils.data.WeightedRandomSampler(torch.ones(64), 64)"
    made = f"train_loader = DataLoader(train_set, batch_size=len(train_set), sampler={sampler}, drop_last={drops})\n"
    result = plain(HEAD.replace(line, made) + LOOP.format(loss=CE, step="optimizer.step()"))
    size = "batch_size=len(train_set) // dist" if drops else "batch_size=-(-len(train_set) // dist"
    assert not refusals(result) and size in result.code


def test_one_batch_of_all_samples_that_a_function_is_told_is_refused() -> None:
    made = "def load(data, size):\n    return DataLoader(data, batch_size=size, shuffle=True)\n"
    made += "train_loader = load(train_set, {})\n"
    line = "train_loader = DataLoader(train_set, batch_size=8, shuffle=True)\n"
    loop = LOOP.format(loss=CE, step="optimizer.step()")
    assert refusals(plain(HEAD.replace(line, made.format("len(train_set)")) + loop))
    assert not refusals(plain(HEAD.replace(line, made.format("8")) + loop))


def test_a_batch_that_next_takes_of_an_evaluation_is_as_large_as_it_was() -> None:
    made = "train_loader = DataLoader(train_set, batch_size=8, shuffle=True)\n"
    made += "test_loader = DataLoader(test_set, batch_size=8)\n"
    together = "sets = {'train': train_set, 'val': test_set}\n"
    together += "loaders = {k: DataLoader(sets[k], batch_size=8, shuffle=True) for k in ['train', 'val']}\n"
    loop = LOOP.format(loss=CE, step="optimizer.step()").replace("train_loader", "loaders['train']")
    adds = "total += F.cross_entropy(model(x), y, reduction='sum').item()"
    loop += EVALUATION.format(adds=adds, shown="total / 30").replace("test_loader", "loaders['val']")
    text = HEAD.replace(made, together) + loop
    assert "batch_size=8 // dist.get_world_size()," in plain(text).code
    code = plain(text + "x, y = next(iter(loaders['val']))\nprint(y[7].item())\n").code
    assert 'batch_size=8 // dist.get_world_size() if k == "train" else 8,' in code
    assert "next(iter(every_batch(loaders['val'])))" in code
