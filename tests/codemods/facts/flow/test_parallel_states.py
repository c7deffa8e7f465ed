"""What is said of checkpoints that know of nn.DataParallel, which the plain style leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_data_parallel import MODEL
from tests.codemods.plain.test_followed import plain, refusals, training

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(4, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.features(x))


"""
PARALLEL = "model = nn.DataParallel(Net()).cuda()\n"
KEYS = "torch.save(model.state_dict(), 'net.pt')\n"
HOLDER = "class Holder:\n    def __init__(self, net):\n        self.net = net\n\n\nheld = Holder(model)\n"


def checkpoints(made: str, after: str) -> list[str]:
    """What is said of the checkpoints of a training whose model is made so."""
    code = (
        training().replace(MODEL, NET + made, 1).replace("loss = F", "x, y = x.cuda(), y.cuda()\n        loss = F", 1)
    )
    result = plain(code + after, "cuda")
    assert not refusals(result)
    return [each.message for each in result.findings if each.rule == "DDP613"]


@pytest.mark.parametrize(
    ("made", "after", "says"),
    [
        (PARALLEL, KEYS, "begin with `module.`"),
        ("model = Net()\nmodel = nn.DataParallel(model).cuda()\n", KEYS, "begin with `module.`"),
        ("model = Net().cuda()\nmodel.features = nn.DataParallel(model.features)\n", KEYS, "have `module.` in them"),
        (PARALLEL, HOLDER + "torch.save({'net': held.net.state_dict()}, 'net.pt')\n", "begin with `module.`"),
        (PARALLEL, "model.load_state_dict(torch.load('net.pt'))\n", "begin with `module.`"),
        (PARALLEL, "state = {'net': model}\ntorch.save(state, 'net.pt')\n", "pickles the whole nn.DataParallel"),
    ],
)
def test_what_checkpoints_know_of_nn_data_parallel_is_said(made: str, after: str, says: str) -> None:
    [said] = checkpoints(made, after)
    assert says in said


@pytest.mark.parametrize(
    ("made", "after"),
    [
        (PARALLEL, "torch.save(model.module.state_dict(), 'net.pt')\n"),
        (PARALLEL, "net = model.module\ntorch.save(net.state_dict(), 'net.pt')\n"),
        (PARALLEL, "torch.save(model.module, 'net.pt')\n"),
        ("model = Net().cuda()\nmodel.load_state_dict(torch.load('a.pt'))\nmodel = nn.DataParallel(model)\n", ""),
        (
            "model = Net().cuda()\nmodel.features = nn.DataParallel(model.features)\n",
            KEYS.replace("state", "head.state"),
        ),
        ("model = Net().cuda()\n", KEYS),
    ],
)
def test_checkpoints_that_know_nothing_of_nn_data_parallel(made: str, after: str) -> None:
    assert checkpoints(made, after) == []


WHERE = "cuda = torch.cuda.is_available()\nmodel = Net().cuda()\nif cuda:\n    model = nn.DataParallel(model)\n"
WAYS = "if {}:\n    state = model.module.state_dict()\nelse:\n    state = model.state_dict()\n"
PICKLES = "torch.save({{'net': model.module if {} else model}}, 'net.pt')\n"


@pytest.mark.parametrize(
    ("made", "after"),
    [
        (WHERE, WAYS.format("cuda")),
        (WHERE, PICKLES.format("cuda")),
        (WHERE, "torch.save(model if not cuda else model.module, 'net.pt')\n"),
        (
            WHERE,
            "def keys():\n    if cuda:\n        return model.module\n    return model.state_dict()\n\n\nkeys()\n",
        ),
        (PARALLEL, PICKLES.format("isinstance(model, (nn.DataParallel, Net))")),
        (PARALLEL, WAYS.format("hasattr(model, 'module')")),
        (
            WHERE.replace("if cuda", "if torch.cuda.device_count() > 1 and cuda"),
            WAYS.format("torch.cuda.device_count() > 1"),
        ),
        (
            WHERE.replace("model = nn.DataParallel(model)", "model.head = nn.DataParallel(model.head)"),
            f"if not cuda:\n    {KEYS}",
        ),
    ],
)
def test_a_condition_says_that_there_is_no_nn_data_parallel(made: str, after: str) -> None:
    assert checkpoints(made, after) == []


@pytest.mark.parametrize(
    ("made", "after", "says"),
    [
        (PARALLEL + "cuda = False\n", WAYS.format("cuda"), "begin with"),
        (WHERE, KEYS, "begin with"),
        (WHERE, WAYS.format("cuda and model.training"), "begin with"),
        (WHERE + "other = len(sys.argv) > 1\n", PICKLES.format("other"), "pickles the whole"),
        (WHERE + "cuda = False\n", WAYS.format("cuda"), "begin with"),
        (
            WHERE + "if len(sys.argv) > 1:\n    model = nn.DataParallel(model)\n",
            PICKLES.format("cuda"),
            "pickles the whole",
        ),
        (
            WHERE,
            "def save(cuda):\n    torch.save(model.module if cuda else model, 'net.pt')\n\n\nsave(False)\n",
            "pickles",
        ),
        (WHERE, WAYS.format("not cuda").replace(".module", ""), "begin with"),
        (
            WHERE.replace("if cuda", "if torch.cuda.device_count() > 1 or cuda"),
            WAYS.format("cuda"),
            "begin with",
        ),
    ],
)
def test_a_condition_that_says_nothing_of_nn_data_parallel(made: str, after: str, says: str) -> None:
    [said] = checkpoints("import sys\n" + made, after)
    assert says in said


def test_the_keys_that_another_file_saves() -> None:
    saves, entry = Path("saves.py"), Path("train.py")
    code = training().replace(MODEL, "import saves\n" + MODEL + "model = nn.DataParallel(model)\n", 1)
    texts = {
        entry: code + "saves.save(model)\n",
        saves: "import torch\n\n\ndef save(net):\n    torch.save(net.state_dict(), 'a')\n",
    }
    found = convert(texts, "cuda", style="plain")[saves].findings
    assert [(each.rule, each.line) for each in found] == [("DDP613", 5)]


def test_a_model_that_is_copied_to_the_gpus_by_hand_is_refused_by_that() -> None:
    """Without a word of backward passes, of which there is one."""
    copies = """def in_parallel(model, *given):
    devices = list(range(torch.cuda.device_count()))
    copies = torch.nn.parallel.replicate(model, devices)
    given = torch.nn.parallel.scatter(given, devices)
    return torch.nn.parallel.gather(torch.nn.parallel.parallel_apply(copies[: len(given)], given), 0)


"""
    ways = """if torch.cuda.device_count() > 1:
            out = in_parallel(model, x)
        else:
            out = model(x)
        loss = F.cross_entropy(out, y)"""
    code = training().replace("loss = F.cross_entropy(model(x), y)", ways).replace("for epoch", copies + "for epoch", 1)
    found = refusals(plain(code, "cuda"))
    assert any("copied to several GPUs" in each for each in found) and not any("backward" in each for each in found)
    frozen = training().replace(
        "for epoch", f"{copies}show = in_parallel(nn.Linear(4, 2), torch.rand(8, 4))\nfor epoch", 1
    )
    assert not any("copied" in each for each in refusals(plain(frozen, "cuda")))
