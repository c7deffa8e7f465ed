"""The trainings of `benchmarks.scaling`, each for one device, as hand-written DDP, for Accelerate and for Fabric."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import indent

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
import meter
{imports}

{definitions}

def main():
    torch.manual_seed(0)
{start}
    device = {device}
    train_set = {train_set}
    test_set = {test_set}
{sets}
    train_loader = {train_loader}
    test_loader = {test_loader}
    model = {model}
    model.to(device)
{wrap}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
{prepare}
    for epoch in range({epochs}):
        meter.epoch()
{epoch}
        model.train()
        seen = 0.0
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
{step}
{report}
        if {evaluates}:
            model.eval()
            correct = total = 0.0
            with torch.no_grad():
                for x, y in test_loader:
                    x, y = x.to(device), y.to(device)
{count}
{reduce}
            print(epoch, correct / total)
    meter.epoch()
{finish}


if __name__ == "__main__":
    main()
"""

_DEPTHS = {
    **{"start": 4, "sets": 4, "wrap": 4, "prepare": 4, "epoch": 8, "step": 12, "report": 8},
    **{"count": 20, "reduce": 12, "finish": 4},
}

PLAIN = {
    "imports": "",
    "definitions": "",
    "start": "",
    "device": 'torch.device("cpu")',
    "sets": "",
    "train_loader": "DataLoader(train_set, batch_size={batch}, shuffle=True{loading})",
    "test_loader": "DataLoader(test_set, batch_size={batch}{loading})",
    "loading": "",
    "test_set": "train_set",
    "wrap": "",
    "prepare": "",
    "epochs": "4",
    "epoch": "",
    "step": """\
optimizer.zero_grad()
loss = {loss}
loss.backward()
optimizer.step()
seen += loss.detach()""",
    "backward": "",
    "report": "print(epoch, float(seen) / len(train_loader))",
    "evaluates": "False",
    "count": "correct += (model(x).argmax(1) == y).sum().item()\ntotal += len(y)",
    "reduce": "",
    "finish": "",
    "loss": "F.cross_entropy(model(x), y)",
    "batch": "64",
}

# What an expert changes; evaluation is exact, by sums over ranks.
BY_HAND = {
    "imports": """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Subset
from torch.utils.data.distributed import DistributedSampler""",
    "start": 'dist.init_process_group("gloo")\nrank, world = dist.get_rank(), dist.get_world_size()',
    "sets": "sampler = DistributedSampler(train_set)\ntest_set = Subset(test_set, range(rank, len(test_set), world))",
    "train_loader": "DataLoader(train_set, batch_size={batch} // world, sampler=sampler{loading})",
    "test_loader": "DataLoader(test_set, batch_size={batch} // world{loading})",
    "wrap": "model = DistributedDataParallel(model)",
    "epoch": "sampler.set_epoch(epoch)",
    "report": """\
seen = torch.as_tensor(seen, device=device)
dist.all_reduce(seen)
if rank == 0:
    print(epoch, float(seen) / world / len(train_loader))""",
    "reduce": """\
sums = torch.tensor([correct, total], device=device)
dist.all_reduce(sums)
correct, total = sums.tolist()""",
    "finish": "dist.destroy_process_group()",
}

# What is written otherwise for GPUs, and how long it then takes to be measured.
ON_GPUS: dict[str, Mapping[str, str]] = {
    "one": {"device": 'torch.device("cuda")', "epochs": "20"},
    "hand": {
        "imports": f"import os\n{BY_HAND['imports']}",
        "device": 'torch.device("cuda", int(os.environ["LOCAL_RANK"]))',
        "start": """\
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()""",
        "wrap": "model = DistributedDataParallel(model, device_ids=[device])",
        "epochs": "20",
    },
}

# As their documentation shows it. A batch size is that of a process for both.
_OF_A_PROCESS = {
    "train_loader": "DataLoader(train_set, batch_size={batch} // world, shuffle=True{loading})",
    "test_loader": "DataLoader(test_set, batch_size={batch} // world{loading})",
}
ACCELERATE = {
    **_OF_A_PROCESS,
    "imports": "from accelerate import Accelerator",
    "start": "accelerator = Accelerator(cpu=True)\nrank, world = accelerator.process_index, accelerator.num_processes",
    "prepare": """\
model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)""",
    "backward": "accelerator.backward",
    "report": """\
seen = accelerator.reduce(torch.as_tensor(seen), "sum")
if rank == 0:
    print(epoch, float(seen) / world / len(train_loader))""",
    "count": """\
found, y = accelerator.gather_for_metrics((model(x).argmax(1), y))
correct += (found == y).sum().item()
total += len(y)""",
    "finish": "accelerator.end_training()",
}
FABRIC = {
    **_OF_A_PROCESS,
    "imports": "import os\nfrom lightning_fabric import Fabric",
    "start": """\
fabric = Fabric(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp")
fabric.launch()
rank, world = fabric.global_rank, fabric.world_size""",
    "prepare": """\
model, optimizer = fabric.setup(model, optimizer)
train_loader, test_loader = fabric.setup_dataloaders(train_loader, test_loader)""",
    "backward": "fabric.backward",
    "report": """\
seen = fabric.all_reduce(torch.as_tensor(seen), reduce_op="sum")
if rank == 0:
    print(epoch, float(seen) / world / len(train_loader))""",
    "reduce": """\
correct, total = fabric.all_reduce(torch.tensor([correct, total]), reduce_op="sum").tolist()""",
    "finish": "",
}

_CONVOLUTIONS = """\
class Net(nn.Module):
    def __init__(self, norm):
        super().__init__()
        layer = nn.BatchNorm2d if norm else lambda width: nn.Identity()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), layer(32), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), layer(32), nn.ReLU(),
            nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), layer(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(64, 10),
        )

    def forward(self, x):
        return self.layers(x)
"""

_AUGMENTED = """\
class Augmented(Dataset):
    def __init__(self, size):
        self.images = torch.randn(size, 3, 64, 64)
        self.labels = torch.randint(10, (size,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        top, left = torch.randint(32, (2,)).tolist()
        image = image[:, top : top + 32, left : left + 32]
        if torch.rand(()) < 0.5:
            image = image.flip(2)
        for _ in range(6):
            image = image * (0.9 + 0.2 * torch.rand(3, 1, 1)) + 0.01 * torch.randn(3, 32, 32)
        return image, self.labels[index]
"""

_TABLE = """\
class Table(Dataset):
    def __init__(self, size):
        self.rows = torch.randn(size, 64)
        self.labels = torch.randint(10, (size,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.rows[index], self.labels[index]
"""

_TRANSFORMER = """\
class Net(nn.Module):
    def __init__(self, words, width=64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout={dropout}, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.drop = nn.Dropout({dropout})
        self.head = nn.Linear(width, {outputs})

    def forward(self, x, labels=None):
        h = self.head(self.drop(self.encoder(self.embed(x))){pooled})
        if labels is None:
            return h
        return h, F.cross_entropy(h.flatten(0, 1), labels.flatten())
"""


def _transformer(dropout: float = 0.1, outputs: str = "10", pooled: str = ".mean(1)") -> str:
    return _TRANSFORMER.format(dropout=dropout, outputs=outputs, pooled=pooled)


_PADDED = """\
class Texts(Dataset):
    def __init__(self, size):
        self.texts = [torch.randint(1, 1000, (int(length),)) for length in torch.randint(8, 33, (size,))]
        self.labels = torch.randint(10, (size,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.texts[index], self.labels[index]


def padded(samples):
    texts, labels = zip(*samples)
    return nn.utils.rnn.pad_sequence(texts, batch_first=True), torch.stack(labels)
"""

_GAN_STEP = """\
optimizer.zero_grad()
fake = generator(torch.randn({noise}, 32, device=device))
real, made = model(x), model(fake.detach())
loss = F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
loss = loss + F.binary_cross_entropy_with_logits(made, torch.zeros_like(made))
loss.backward()
optimizer.step()
generator_optimizer.zero_grad()
made = model(fake)
fooled = F.binary_cross_entropy_with_logits(made, torch.ones_like(made))
fooled.backward()
generator_optimizer.step()
seen += loss.detach()"""

_GENERATOR = """\
generator = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 64)).to(device)
{wrap_second}
generator_optimizer = torch.optim.SGD(generator.parameters(), lr=0.01)
{prepare_second}
"""


@dataclass(frozen=True)
class Workload:
    """A training. gaps: what fills SCRIPT's. ways: what is written beyond WAYS, for some of them."""

    gaps: Mapping[str, str]
    ways: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _gan(way: Mapping[str, str], wrap: str = "", prepare: str = "", noise: str = "{batch} // world") -> dict[str, str]:
    second = _GENERATOR.replace("{wrap_second}", wrap).replace("{prepare_second}", prepare)
    step = _GAN_STEP.replace("{noise}", noise)
    return {"prepare": second + way.get("prepare", ""), "step": step}


_IMAGES = "TensorDataset(torch.randn({0}, 3, 32, 32), torch.randint(10, ({0},)))"
_TEXT = "TensorDataset(torch.randint(1000, ({0}, 32)), torch.randint(10, ({0},)))"

WORKLOADS: dict[str, Workload] = {
    "convolutions": Workload(
        {"definitions": _CONVOLUTIONS, "train_set": _IMAGES.format(1024), "model": "Net(norm=False)"}
    ),
    "three BatchNorms": Workload(
        {"definitions": _CONVOLUTIONS, "train_set": _IMAGES.format(1024), "model": "Net(norm=True)"}
    ),
    "augmentation": Workload(
        {
            "definitions": _CONVOLUTIONS.replace("32, 3, padding", "8, 3, padding").replace("(32", "(8") + _AUGMENTED,
            "train_set": "Augmented(1024)",
            "model": "nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, 16, 3, 2), nn.ReLU(), "
            "nn.Flatten(), nn.Linear(784, 10))",
        }
    ),
    "evaluation": Workload(
        {
            "definitions": _CONVOLUTIONS,
            "train_set": _IMAGES.format(512),
            "test_set": _IMAGES.format(1024),
            "model": "Net(norm=False)",
            "evaluates": "True",
        }
    ),
    "teacher": Workload(
        {
            "definitions": _CONVOLUTIONS + "\n\nteacher = Net(norm=False).eval().requires_grad_(False)\n",
            "train_set": _IMAGES.format(1024),
            "model": "Net(norm=False)",
            "loss": "F.cross_entropy(out := model(x), y) + F.mse_loss(out, teacher.to(device)(x))",
        }
    ),
    "dropout": Workload({"definitions": _transformer(), "train_set": _TEXT.format(1024), "model": "Net(1000)"}),
    "8192 words": Workload(
        {
            "definitions": _transformer(outputs="8192", pooled=""),
            "train_set": "TensorDataset(*torch.randint(8192, (2, 256, 32)))",
            "model": "Net(8192)",
            "batch": "32",
            "loss": "F.cross_entropy(model(x).flatten(0, 1), y.flatten())",
        }
    ),
    "loss in the forward": Workload(
        {
            "definitions": _transformer(outputs="1000", pooled=""),
            "train_set": "TensorDataset(*torch.randint(1000, (2, 512, 32)))",
            "model": "Net(1000)",
            "loss": "model(x, y)[1]",
        }
    ),
    "ignore_index": Workload(
        {
            "definitions": _transformer(outputs="1000", pooled=""),
            "sets": "train_set.tensors[1][torch.rand(512, 32) < 0.3] = -100",
            "train_set": "TensorDataset(*torch.randint(1000, (2, 512, 32)))",
            "model": "Net(1000)",
            "loss": "F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100)",
        },
        {"hand": {"sets": "train_set.tensors[1][torch.rand(512, 32) < 0.3] = -100\n" + BY_HAND["sets"]}},
    ),
    "padded text": Workload(
        {
            "definitions": _PADDED
            + "\n\n"
            + _transformer().replace(
                "self.encoder(self.embed(x))", "self.encoder(self.embed(x), src_key_padding_mask=x == 0)"
            ),
            "train_set": "Texts(1024)",
            "model": "Net(1000)",
            "loading": ", collate_fn=padded",
        }
    ),
    "GAN": Workload(
        {
            "train_set": "TensorDataset(torch.randn(2048, 64), torch.zeros(2048))",
            "model": "nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))",
            **_gan({}, noise="{batch}"),
        },
        {
            "hand": _gan({}, wrap="generator = DistributedDataParallel(generator)"),
            "accelerate": _gan(
                ACCELERATE,
                prepare="generator, generator_optimizer = accelerator.prepare(generator, generator_optimizer)",
            ),
            "fabric": _gan(
                FABRIC, prepare="generator, generator_optimizer = fabric.setup(generator, generator_optimizer)"
            ),
        },
    ),
    "own data set": Workload(
        {
            "definitions": _TABLE,
            "train_set": "Table(4096)",
            "model": "nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))",
        }
    ),
    "own data set, workers": Workload(
        {
            "definitions": _TABLE,
            "train_set": "Table(4096)",
            "loading": ", num_workers=2",
            "model": "nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))",
        }
    ),
    "perceptron": Workload(
        {
            "train_set": "TensorDataset(torch.randn(8192, 64), torch.randint(10, (8192,)))",
            "model": "nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))",
        }
    ),
}


WAYS: dict[str, Mapping[str, str]] = {"one": {}, "hand": BY_HAND, "accelerate": ACCELERATE, "fabric": FABRIC}


def script(name: str, way: str, device: str = "cpu") -> str:
    """The source of a workload, written in one of WAYS; what ddpify makes of "one" is measured beside the others.

    Args:
        device: "cpu", or "cuda" for one of ON_GPUS.
    """
    workload = WORKLOADS[name]
    filled = {**PLAIN, **workload.gaps, **WAYS[way], **(ON_GPUS[way] if device == "cuda" else {})}
    filled |= workload.ways.get(way, {})
    if filled["backward"]:
        filled["step"] = re.sub(r"(\w+)\.backward\(\)", rf"{filled['backward']}(\1)", filled["step"])
    for inner in ("loss", "loading", "batch"):
        filled = {key: code.replace("{" + inner + "}", filled[inner]) for key, code in filled.items()}
    return SCRIPT.format(**{key: indent(code, " " * _DEPTHS.get(key, 0)) for key, code in filled.items()})
