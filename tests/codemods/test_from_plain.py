"""Programs in the plain style are taken back to one device, to the exact style, and brought up to date."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ddpify_codemods import ONE_DEVICE, Finding, convert

from tests.e2e import fixtures
from tests.e2e.test_plain_metrics import HEAD, SCRIPTS

PATH = Path("train.py")
_TRAINING = "DataLoader(train, batch_size=batch_size, shuffle=True)"
_LOADED = "again = torch.load(os.path.join(args.save_dir, 'whole_model.pt'), weights_only=False"
# What a conversion to the plain style does not keep, in the fixtures that do not come back as they were: lines that
# went, and lines that stand for them. Imports and layout apart.
NOT_KEPT: dict[str, tuple[set[str], set[str]]] = {
    # `shuffle=False` behind all other arguments is what a loader does anyway.
    "batchnorm": (
        {"valid_loader = DataLoader(valid_set, batch_size, shuffle=False)"},
        {"valid_loader = DataLoader(valid_set, batch_size)"},
    ),
    "side_output": (
        {f"return ({_TRAINING}, DataLoader(test, batch_size=batch_size, shuffle=False))"},
        {f"return ({_TRAINING}, DataLoader(test, batch_size=batch_size))"},
    ),
    # A folder may be there.
    "saved_images": ({"os.mkdir(out_dir)"}, {"os.makedirs(out_dir, exist_ok=True)"}),
    "vae": ({"os.mkdir(args.results)"}, {"os.makedirs(args.results, exist_ok=True)"}),
    "cuda_everywhere": (
        {
            "testloader = data.DataLoader(Patches(train=False), batch_size=25, shuffle=False)",
            "os.mkdir('checkpoint')",
        },
        {
            "testloader = data.DataLoader(Patches(train=False), batch_size=25)",
            "os.makedirs('checkpoint', exist_ok=True)",
        },
    ),
    "began": ({"os.makedirs(OUT)"}, {"os.makedirs(OUT, exist_ok=True)"}),
    # The device has no number, and files are loaded to it.
    "gan": (
        {"device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')", "os.makedirs(opt.outf)"},
        {
            "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
            "os.makedirs(opt.outf, exist_ok=True)",
        },
    ),
    "ema": (
        {"device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')"},
        {"device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"},
    ),
    "grad_accumulation": (
        {"device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')"},
        {"device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"},
    ),
    "frozen_backbone": (
        {
            "device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')",
            "backbone.load_state_dict(torch.load(args.backbone))",
        },
        {
            "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
            "backbone.load_state_dict(torch.load(args.backbone, map_location='cuda'))",
        },
    ),
    "loaders_from_helper": (
        {"device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')", "os.mkdir('models')"},
        {
            "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
            "os.makedirs('models', exist_ok=True)",
        },
    ),
    "resume": (
        {
            "os.makedirs(args.save_dir)",
            f"{_LOADED})",
        },
        {
            "os.makedirs(args.save_dir, exist_ok=True)",
            f"{_LOADED}, map_location='cuda')",
        },
    ),
    # What a script draws from numpy is seeded.
    "siamese": (set(), {"numpy.random.seed(0)"}),
    "three_modules": (
        {"os.makedirs(args.output_dir)"},
        {"os.makedirs(args.output_dir, exist_ok=True)", "numpy.random.seed(0)"},
    ),
    # nn.DataParallel is not for several processes.
    "data_parallel": (
        {
            "test_loader = DataLoader(SortedOrNot(90, seed=3), batch_size=batch_size, shuffle=False)",
            "model = nn.DataParallel(model)",
            "print('parameters:', model.module.num_params())",
            "torch.nn.utils.clip_grad_norm_(model.module.parameters(), max_norm=5.0)",
            "torch.save(model.module.state_dict(), 'encoder_e%d.pth' % epoch)",
        },
        {
            "test_loader = DataLoader(SortedOrNot(90, seed=3), batch_size=batch_size)",
            "print('parameters:', model.num_params())",
            "torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=5.0)",
            "torch.save(model.state_dict(), 'encoder_e%d.pth' % epoch)",
        },
    ),
}
BEFORE = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train_set = TensorDataset(torch.rand(64, 4), torch.randint(2, (64,)))
test_set = TensorDataset(torch.rand(30, 4), torch.randint(2, (30,)))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
test_loader = DataLoader(test_set, batch_size=8)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in train_loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    print(correct / len(test_set))
torch.save(model.state_dict(), "model.pt")
"""


def plain(target: str = "cpu", before: str = BEFORE, **options: Any) -> str:
    """A script in the plain style."""
    code = convert({PATH: before}, target, style="plain", **options)[PATH].code
    assert "init_process_group" in code
    return code


def refusals(text: str, target: str = ONE_DEVICE, style: str = "") -> list[Finding]:
    """What a script is refused for; it stays as it is."""
    result = convert({PATH: text}, target, style=style)[PATH]
    assert result.code == text
    return [each for each in result.findings if each.severity == "refused"]


def lines(texts: dict[Path, str]) -> Counter[str]:
    """The lines of a program, without its imports and its layout."""
    trees = {path: ast.parse(text) for path, text in texts.items()}
    for tree in trees.values():
        tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return Counter(line.strip() for tree in trees.values() for line in ast.unparse(tree).split("\n"))


def in_fixture(name: str) -> tuple[dict[Path, str], dict[Path, str]]:
    """The program of a fixture, and what it is in the plain style for GPUs."""
    fixture = fixtures.load(name)
    program = fixtures.program(fixture)
    kept = {fixture.folder / path: code.decode() for path, code in fixtures.expected(fixture, "plain.cuda").items()}
    return program, program | kept


@pytest.mark.parametrize(
    "name", [name for name in fixtures.names() if fixtures.expected(fixtures.load(name), "plain.cuda")]
)
def test_a_fixture_comes_back(name: str) -> None:
    before, there = in_fixture(name)
    back = {path: result.code for path, result in convert(there, ONE_DEVICE).items()}
    went, came = NOT_KEPT.get(name, (set(), set()))
    assert (set(lines(before) - lines(back)), set(lines(back) - lines(before))) == (went, came)
    assert all(text.count("\n\n\n\n") <= before[path].count("\n\n\n\n") for path, text in back.items())


@pytest.mark.parametrize("name", ["main_guard", "trainer_class", "tied_weights", "three_modules"])
def test_a_fixture_becomes_exact(name: str) -> None:
    before, there = in_fixture(name)
    back = {path: result.code for path, result in convert(there, ONE_DEVICE).items()}
    exact = {path: result.code for path, result in convert(there, "cuda", style="exact").items()}
    assert exact == {path: result.code for path, result in convert(back, "cuda", style="exact").items()}
    if name not in NOT_KEPT:
        assert lines(exact) == lines({path: result.code for path, result in convert(before, "cuda").items()})


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("cpu", {}),
        ("cpu", {"per_process": True}),
        ("cpu", {"optimizer_sharding": True}),
        ("cuda", {"sync_batchnorm": True, "entry": "spawn"}),
        ("mpi", {}),
        ("xpu", {}),
        ("xpu", {"backend": "ccl"}),
    ],
)
def test_the_very_script_comes_back(target: str, options: dict[str, Any]) -> None:
    there = plain(target, **options)
    assert convert({PATH: there}, ONE_DEVICE)[PATH].code == BEFORE
    assert convert({PATH: there}, target, style="exact", per_process=False)[PATH].code.count("ddpify_runtime") >= 1
    again = convert({PATH: there}, target, style="plain")[PATH]
    assert (again.code, again.reason) == (there, "already converted")


def test_imports_in_another_order_are_the_same() -> None:
    there = plain().replace("import os\n", "", 1).replace("import torch\n", "import torch\nimport os\n", 1)
    again = convert({PATH: there}, "cpu", style="plain")[PATH]
    assert (again.code, again.reason) == (there, "already converted")


def test_options_of_loaders_in_a_dictionary_come_back() -> None:
    before = BEFORE.replace("(train_set, batch_size=8, shuffle=True)", "(train_set, **options)")
    before = before.replace("train_loader =", "options = {'batch_size': 8, 'shuffle': True}\ntrain_loader =")
    assert "options.pop" in plain(before=before)
    assert convert({PATH: plain(before=before)}, ONE_DEVICE)[PATH].code == before
    assert convert({PATH: plain(before=before)}, "cpu", style="plain")[PATH].reason == "already converted"


@pytest.mark.parametrize("target", ["cpu", "cuda", "xpu"])
def test_a_new_effect_is_guarded_where_the_file_is_converted(target: str) -> None:
    new = "    torch.save(optimizer.state_dict(), 'last.pt')\n"
    place = "    print(correct"
    edited = plain(target).replace(place, new + place, 1)
    again = convert({PATH: edited}, target, style="plain")[PATH].code
    guarded = f"    if dist.get_rank() == 0:\n    {new}"
    assert again == edited.replace(new, guarded)
    assert convert({PATH: again}, target, style="plain")[PATH].code == again
    assert convert({PATH: edited}, target)[PATH].code == edited  # only where the style is asked for
    assert convert({PATH: edited}, ONE_DEVICE)[PATH].code == BEFORE.replace(place, new + place, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DistributedDataParallel(model)", "DistributedDataParallel(model, static_graph=True)"),
        ("    print(correct", "    if dist.get_rank() == 0:\n        log(correct)\n    print(correct"),
    ],
)
def test_what_a_person_has_written_is_not_written_over(old: str, new: str) -> None:
    edited = plain().replace(old, new, 1).replace("dist.destroy", "torch.save(1, 'one.pt')\ndist.destroy", 1)
    assert new in edited
    result = convert({PATH: edited}, "cpu", style="plain")[PATH]
    assert result.code == edited
    [note] = [each for each in result.findings if each.severity == "note"]
    assert edited.splitlines()[note.line - 1].strip().removeprefix("ddp_model = ") in new


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


def test_code_by_hand_is_left_alone() -> None:
    text = (fixtures.ROOT.parent / "tests" / "e2e" / "by_hand" / "spawned.cuda.py").read_text()
    result = convert({PATH: text}, ONE_DEVICE)[PATH]
    assert (result.code, result.reason, result.findings) == (text, "not converted", ())
    assert convert({PATH: text}, "cuda", style="exact") == convert({PATH: text}, "cuda")


def test_fully_shard_is_refused() -> None:
    there = plain(fully_sharded=True)
    found = refusals(there)
    assert any("fully_shard(model" in there.splitlines()[each.line - 1] for each in found)
