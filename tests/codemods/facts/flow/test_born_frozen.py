"""Parameters that libraries make frozen."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals
from tests.codemods.plain.test_wrapping import DATA, FREEZES, NET, SGD, THAWED, TRAINED

BORN = [
    ("net.embedding = nn.Embedding.from_pretrained(torch.rand(3, 4))\n", True),
    ("net.embedding = nn.Embedding.from_pretrained(torch.rand(3, 4), freeze=False)\n", False),
    ("net.place = nn.Parameter(torch.rand(4), requires_grad=False)\n", True),
    ("net.place = nn.Parameter(torch.rand(4))\n", False),
    ("import torchvision\nnet.backbone = torchvision.models.resnet18()\n", False),
    ("import torchvision\nnet.backbone = torchvision.models.detection.fasterrcnn_resnet50_fpn()\n", True),
    ("from transformers import AutoModel\nnet.bert = AutoModel.from_pretrained('a')\n", True),
    ("from transformers import BertModel, BertTokenizer\nBertTokenizer()\nnet.bert = BertModel()\n", False),
    ("import other\nnet.backbone = other.make()\n", True),
    ("import numpy as np, os\nprint(np.mean([1.0]), os.getcwd())\n", False),
    ("net[0] = torch.load('a.pt')\n", True),
    ("part = torch.load('a.pt')\nnet.part = part\n", True),
    ("state = torch.load('a.pt')\nnet.load_state_dict(state['net'])\n", False),
    ("net.load_state_dict(torch.load('a.pt'))\n", False),
]


@pytest.mark.parametrize(("makes", "frozen"), BORN)
def test_what_libraries_make_frozen_is_no_parameter_that_the_wrapper_knows(makes: str, frozen: bool) -> None:
    unfrozen = f"{SGD}{TRAINED}{THAWED}{TRAINED}"
    found = refusals(plain(f"{DATA}{NET}{makes}{unfrozen}"))
    assert any("frozen or unfrozen" in each for each in found) is frozen
    assert not any("frozen" in each for each in refusals(plain(f"{DATA}{NET}{makes}{SGD}{TRAINED}{FREEZES}{TRAINED}")))
