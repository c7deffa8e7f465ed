"""Programs in the plain style are taken back to one device."""

from __future__ import annotations

import re

import pytest
from ddpify_codemods import ONE_DEVICE, Finding, convert

from tests.codemods.moves.plain_programs import BEFORE, NOT_KEPT, PATH, in_fixture, lines, plain
from tests.e2e import fixtures
from tests.e2e.test_plain_metrics import HEAD, SCRIPTS
from tests.turns import in_turn


def refusals(text: str, target: str = ONE_DEVICE, style: str = "") -> list[Finding]:
    """What a script is refused for; it stays as it is."""
    result = convert({PATH: text}, target, style=style)[PATH]
    assert result.code == text
    return [each for each in result.findings if each.severity == "refused"]


@pytest.mark.parametrize(
    "name", in_turn((name,) for name in fixtures.names() if fixtures.expected(fixtures.load(name), "plain.cuda"))
)
def test_a_fixture_comes_back(name: str) -> None:
    before, there = in_fixture(name)
    back = {path: result.code for path, result in convert(there, ONE_DEVICE).items()}
    went, came = NOT_KEPT.get(name, (set(), set()))
    assert (set(lines(before) - lines(back)), set(lines(back) - lines(before))) == (went, came)
    assert all(text.count("\n\n\n\n") <= before[path].count("\n\n\n\n") for path, text in back.items())


def test_options_of_loaders_in_a_dictionary_come_back() -> None:
    before = BEFORE.replace("(train_set, batch_size=8, shuffle=True)", "(train_set, **options)")
    before = before.replace("train_loader =", "options = {'batch_size': 8, 'shuffle': True}\ntrain_loader =")
    assert "options.pop" in plain(before=before)
    assert convert({PATH: plain(before=before)}, ONE_DEVICE)[PATH].code == before
    assert convert({PATH: plain(before=before)}, "cpu", style="plain")[PATH].reason == "already converted"


def test_loaders_that_are_made_for_each_epoch_come_back() -> None:
    made = "DataLoader(train_set, batch_size=8, shuffle=True)"
    before = BEFORE.replace(f"train_loader = {made}\n", f"def loader():\n    return {made}\n")
    before = before.replace("in train_loader", "in loader()")
    assert "seed=next(orders)" in plain(before=before)
    assert convert({PATH: plain(before=before)}, ONE_DEVICE)[PATH].code == before
    own = plain(before=before) + "print(next(orders))\n"
    assert "orders = itertools.count()" in convert({PATH: own}, ONE_DEVICE)[PATH].code


def test_an_order_that_loaders_share_comes_back() -> None:
    before = BEFORE.replace("(train_set, batch_size=8, shuffle=True)", "(train_set, **options)")
    before = before.replace("train_loader =", "options = {'batch_size': 8, 'shuffle': True}\ntrain_loader =")
    before = before.replace("model =", "others = DataLoader(train_set, **options)\nmodel =", 1)
    assert "shuffle=False)" in plain(before=before)
    assert convert({PATH: plain(before=before)}, ONE_DEVICE)[PATH].code == before


def test_what_a_person_lets_rank_0_do_the_one_process_does() -> None:
    place = "    print(correct"
    own = "    if dist.get_rank() == 0:\n        log(epoch)  # mine\n    share = epoch * dist.get_world_size()\n"
    own += (
        "    if epoch:\n        pass\n    else:\n        if dist.get_rank() == 0:\n            log(1)\n        log(2)\n"
    )
    own += "    if epoch:\n        log(3)\n    elif dist.get_rank() == 0:\n        log(4)\n"
    own += "    elif dist.get_rank() != 0:\n        log(5)\n"
    own += "    seed = 3 + dist.get_rank()\n    half = len(loss) / 2 // dist.get_world_size()\n"
    back = convert({PATH: plain().replace(place, own + place, 1)}, ONE_DEVICE)[PATH].code
    mine = "    log(epoch)  # mine\n    share = epoch\n"
    mine += "    if epoch:\n        pass\n    else:\n        log(1)\n        log(2)\n"
    mine += "    if epoch:\n        log(3)\n    elif 0 == 0:\n        log(4)\n    elif 0 != 0:\n        log(5)\n"
    mine += "    seed = 3 + 0\n    half = len(loss) / 2 // 1\n"
    assert back == BEFORE.replace(place, mine + place, 1)


@pytest.mark.parametrize(
    "line",
    [
        "dist.all_reduce(loss)",
        "local = int(os.environ['LOCAL_RANK'])",
        "group = dist.new_group([0])",
        "other = ddp_model",
        "weights = model.module.weight",
        "weights = ddp_model.module.weight",
        "train_loader.batch_sampler.sampler.set_epoch(7)",
        "extra = DataLoader(train_set, sampler=DistributedSampler(train_set, shuffle=True))",
        "extra = DataLoader(train_set, sampler=DistributedSampler(train_set, drop_last=True))",
        "def mean_over_ranks(ddp_model): return ddp_model",
        "reduce = sum_over_ranks",
    ],
)
def test_what_cannot_be_taken_back_is_refused(line: str) -> None:
    place = "optimizer = "
    edited = plain().replace(place, f"{line}\n{place}", 1)
    for found in (refusals(edited), refusals(edited, "cpu", "exact")):
        assert edited.splitlines()[found[0].line - 1] == line
        assert found[0].rule in ("DDP701", "DDP704", "DDP705", "DDP302") and found[0].remedy


def test_a_function_of_the_same_name_that_does_something_else_is_refused() -> None:
    edited = plain().replace("    dist.all_reduce(total)\n", "    dist.all_reduce(total, dist.ReduceOp.MAX)\n", 1)
    found = refusals(edited)
    assert "all_reduce" in edited.splitlines()[found[0].line - 1]


def test_a_function_that_another_file_imports_is_refused() -> None:
    edited = plain().replace("import torch\n", "import torch\nimport other\n", 1)
    other = "from train import sum_over_ranks\n"
    results = convert({PATH: edited, PATH.with_name("other.py"): other}, ONE_DEVICE)
    assert results[PATH].code == edited
    assert [each.line for each in results[PATH.with_name("other.py")].findings if each.severity == "refused"] == [1]


def test_downloads_logs_and_names_come_back() -> None:
    before = BEFORE.replace("import torch\n", "import time\nimport torch\n", 1).replace(
        "from torch.utils.data import DataLoader, TensorDataset\n",
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "from torch.utils.tensorboard import SummaryWriter\nfrom torchvision import datasets\n",
    )
    before = before.replace(
        "model = ",
        "more = datasets.MNIST('data', download=True)\nrun = time.strftime('%H%M')\nwriter = SummaryWriter(run)\n"
        "model = ",
        1,
    ).replace(
        "        optimizer.step()\n",
        "        optimizer.step()\n        writer.add_scalar('loss', loss.item(), epoch)\n",
    )
    there = plain(before=before)
    assert "mean_loss = mean_over_ranks(" in there and "from_rank_0(" in there and there.count("dist.barrier()") == 2
    assert convert({PATH: there}, ONE_DEVICE)[PATH].code == before


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_meters_batches_and_evaluations_of_training_come_back(name: str, target: str) -> None:
    before = HEAD + SCRIPTS[name]
    assert convert({PATH: plain(target, before)}, ONE_DEVICE)[PATH].code == before


def test_an_evaluation_whose_loader_a_person_has_chosen_is_refused() -> None:
    before = HEAD + SCRIPTS["training is evaluated"]
    edited = plain(before=before).replace("rate(test_loader)", "rate(each_sample_once(test_loader))")
    assert "each_sample_once(test_loader)" in edited
    assert refusals(edited)


def test_a_wrapper_in_the_place_of_its_model_is_refused() -> None:
    edited = plain().replace("ddp_model", "model")
    assert [each.rule for each in refusals(edited)] == ["DDP704"]


@pytest.mark.parametrize("target", ["cpu", "mpi"])
def test_a_model_that_was_divided_comes_back(target: str) -> None:
    layers = "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    layers += "        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])\n"
    layers += "        self.head = torch.nn.Linear(4, 2)\n\n    def forward(self, x):\n"
    layers += "        for layer in self.layers:\n            x = layer(x)\n        return self.head(x)\n\n\n"
    before = BEFORE.replace("torch.manual_seed", f"\n{layers}torch.manual_seed", 1)
    before = re.sub("model = .*", "model = Net()", before) + 'model.load_state_dict(torch.load("model.pt"))\n'
    there = plain(target, before, fully_sharded=True)
    for word in ("fully_shard(layer", "get_model_state_dict(model", "model.reshard()", "set_model_state_dict(model"):
        assert word in there
    assert convert({PATH: there}, ONE_DEVICE)[PATH].code == before


@pytest.mark.parametrize("line", ["fully_shard(model[0])", "fully_shard(model[0], reshard_after_forward=False)"])
def test_a_model_that_a_person_divides_is_refused(line: str) -> None:
    there = plain("cuda", before=BEFORE.replace("8, 2))", "8, 2)).cuda()"), fully_sharded=True)
    edited = there.replace("optimizer = ", f"{line}\noptimizer = ", 1)
    assert [edited.splitlines()[each.line - 1] for each in refusals(edited)] == [line]
