"""Where the running statistics of rank 0 are sent: before an evaluation, and before the loops that only sample."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

MODEL = "model = nn.Linear(4, 3)\n"
SENDS = "for buffer in model.buffers():\n"
SHOWS = "print(model(torch.ones(2, 4)).sum().item())\n"


@pytest.mark.parametrize(
    ("after", "before"),
    [
        (f"for i in range(3):\n    for j in range(2):\n        {SHOWS}", "for i in"),
        (f"for i in range(3):\n    with torch.no_grad():\n        {SHOWS}", "for i in"),
        (f"for i in range(3):\n    if i:\n        {SHOWS}", "print(model"),
        ("for net in [model]:\n    print(net(torch.ones(2, 4)).sum().item())\n", "print(net("),
        (f"for i in range(3):\n    for x, y in train_loader:\n        model(x)\n    {SHOWS}", "print(model"),
        (f"def again():\n    pass\n\n\nfor i in range(3):\n    again()\n    {SHOWS}", "print(model"),
    ],
)
def test_the_place(after: str, before: str) -> None:
    made = "model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))\n"
    result = plain(training().replace(MODEL, made, 1) + f"model.eval()\n{after}")
    assert not refusals(result)
    lines = [line.strip() for line in result.code[result.code.index("model.eval()") :].splitlines()]
    places = [place for place, line in enumerate(lines) if line.startswith("dist.broadcast(buffer")]
    assert lines[places[-1] + 1].startswith(before)


OTHER = """\
class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
"""


@pytest.mark.parametrize(
    ("before", "made", "said"),
    [
        ("", "nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))", True),
        ("norm = nn.BatchNorm1d\n", "nn.Sequential(nn.Linear(4, 3), norm(3))", True),
        (OTHER, "nn.Sequential(nn.Linear(4, 3), nn.BatchNorm2d(3))", False),
        (
            "print(isinstance(F, (nn.Linear, nn.BatchNorm1d)))\n",
            "nn.Sequential(nn.Linear(4, 3), nn.BatchNorm2d(3))",
            False,
        ),
        ("print(isinstance(F, nn.BatchNorm1d))\n", "nn.Sequential(nn.Linear(4, 3), nn.BatchNorm2d(3))", False),
    ],
)
def test_layers_that_the_program_makes_end_at_a_batch_of_one(before: str, made: str, said: bool) -> None:
    result = plain(training().replace(MODEL, f"{before}model = {made}\n", 1))
    assert any("BatchNorm1d ends with an error, also where" in each.message for each in result.findings) is said


@pytest.mark.parametrize(
    ("size", "loads", "says"),
    [("1", "", "leaves it"), ("model_size", "", "may leave it"), ("2", "", ""), ("1", ", drop_last=True", "")],
)
def test_a_pooling_to_one_value_ends_at_a_batch_of_one(size: str, loads: str, says: str) -> None:
    """As the pooled branch of DeepLab's ASPP, and pyramids of poolings."""
    pool = f"nn.AdaptiveAvgPool2d({size}), nn.BatchNorm2d(4)"
    layers = f"nn.Unflatten(1, (4, 1, 1)), {pool}, nn.Flatten(), nn.Linear(4, 3)"
    source = training().replace(MODEL, f"model_size = int(1)\nmodel = nn.Sequential({layers})\n", 1)
    result = plain(source.replace("shuffle=True", f"shuffle=True{loads}", 1))
    said = [each.message for each in result.findings if "a pooling" in each.message]
    assert len(said) == bool(says) and says in "".join(said)


LOOKED_UP = "from torchvision.models import {}\n"
INSIDE = """\
import somelib


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = {}
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        return self.out(self.encoder(x))


"""


@pytest.mark.parametrize(
    ("before", "made", "sent"),
    [
        ("import somelib\n", "somelib.Net(3)", True),
        (INSIDE.format("somelib.Net(4)"), "Own()", True),
        (INSIDE.format("nn.Sequential(nn.Linear(4, 4), somelib.Block(4))"), "Own()", True),
        (INSIDE.format("nn.Linear(4, 4)"), "Own()", False),
        (
            INSIDE.format("nn.Embedding(4, 4)").replace("nn.Linear(4", "nn.Linear(self.encoder.embedding_dim"),
            "Own()",
            False,
        ),
        ("import transformers\n", "transformers.BertModel(transformers.BertConfig())", False),
        ("import sys\n" + LOOKED_UP.format("resnet18"), "eval(sys.argv[1])()", True),
        ("import sys\n" + LOOKED_UP.format("resnet18") + INSIDE.format("eval(sys.argv[1])()"), "Own()", True),
        ("import sys\n" + LOOKED_UP.format("vit_b_16") + INSIDE.format("eval(sys.argv[1])()"), "Own()", False),
    ],
)
def test_models_whose_layers_are_not_seen(before: str, made: str, sent: bool) -> None:
    """Each rank would evaluate with statistics of its own, and print a number that no saved model gives."""
    source = training().replace(MODEL, f"{before}model = {made}\n", 1) + f"model.eval()\n{SHOWS}"
    result = plain(source)
    assert not refusals(result)
    assert (SENDS in result.code) is sent
    assert any("BatchNorm" in each.message for each in result.findings) is sent
