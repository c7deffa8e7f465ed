"""Whether the models of a program have BatchNorm."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.batch_norm import normalizes

from tests.codemods.checks import script_of

HEAD = """\
import timm
import torch
import torchvision
from segmentation_models_pytorch import Unet, losses
from torchvision import models

"""


@pytest.mark.parametrize(
    ("made", "has_it"),
    [
        ("torch.nn.Linear(4, 2)", False),
        ("torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))", True),
        ("lambda h: torch.nn.functional.batch_norm(h, None, None, training=True)", True),
        ("models.resnet18()", True),
        ("models.vgg16_bn()", True),
        ("models.vgg16()", False),
        ("models.vit_b_16(weights=models.ViT_B_16_Weights.DEFAULT)", False),
        ("models.__dict__[name]()", True),
        ("getattr(torchvision.models, name)()", True),
        ('timm.create_model("vit_tiny_patch16_224", pretrained=True)', False),
        ("timm.create_model(name)", True),
        ('torch.hub.load("pytorch/vision", "alexnet")', False),
        ("Unet()", True),
        ("losses.DiceLoss()", False),
    ],
)
def test_layers_and_models_of_libraries_are_known(made: str, has_it: bool) -> None:
    assert normalizes([script_of(f"{HEAD}model = {made}\n")]) is has_it


def test_what_an_imported_file_has_besides_counts_for_nothing() -> None:
    helpers = "import torch\n\n\ndef unused():\n    return torch.nn.BatchNorm1d(4)\n\n\ndef used():\n    return 1\n"
    for name, has_it in (("used", False), ("unused", True)):
        train = f"from helpers import used, unused\n\n{name}()\n"
        scripts = [script_of(train), script_of(helpers, is_entry=False)]
        assert normalizes(scripts) is has_it


def test_models_that_are_looked_up_by_name_count() -> None:
    models = "import torch\n\n\ndef small():\n    return torch.nn.BatchNorm1d(4)\n"
    for made, has_it in (("models.__dict__[name]()", True), ("torch.nn.Linear(4, 2)", False)):
        train = f"import models\nimport torch\n\nmodel = {made}\n"
        assert normalizes([script_of(train), script_of(models, is_entry=False)]) is has_it
