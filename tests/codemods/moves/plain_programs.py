"""Programs in the plain style, for the tests of what becomes of them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

from ddpify_codemods import convert

from tests.e2e import fixtures

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
    # A mean over the targets that count is the sum of these, divided by how many they are.
    "sorted_rnn": (
        {
            "criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)",
            "loss = criterion(scores.view(-1, TAGS), tags.view(-1))",
        },
        {
            "criterion = nn.CrossEntropyLoss(ignore_index=IGNORE, reduction='sum')",
            "loss = criterion(scores.view(-1, TAGS), tags.view(-1)) / (tags.view(-1) != criterion.ignore_index).sum()",
        },
    ),
    # A folder may be there already.
    "wgan_clip": ({"os.makedirs('wgan_out')"}, {"os.makedirs('wgan_out', exist_ok=True)"}),
    # Backward passes that follow each other are one, of the sum.
    "two_forwards_two_backwards": (
        {
            "dev = torch.device('cuda:0') if torch.cuda.is_available() else torch.device('cpu')",
            "loss_s.backward()",
            "loss_t.backward()",
        },
        {
            "dev = torch.device('cuda') if torch.cuda.is_available() else torch.device('cpu')",
            "(loss_s + loss_t).backward()",
        },
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
    "package_project": (
        {"return torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')"},
        {"return torch.device('cuda' if torch.cuda.is_available() else 'cpu')"},
    ),
    "progressive_unfreeze": (
        {"device = 'cuda:0' if torch.cuda.is_available() else 'cpu'"},
        {"device = 'cuda' if torch.cuda.is_available() else 'cpu'"},
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
            f"{_LOADED}, map_location={{'cuda:0': 'cuda'}})",
        },
    ),
    # What a script draws from numpy is seeded.
    "siamese": (set(), {"np.random.seed(0)"}),
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
