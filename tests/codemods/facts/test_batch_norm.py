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


ASKS = "import torch.nn as nn\n\nfor part in net.modules():\n    if {asks}:\n        part.eval()\n"


@pytest.mark.parametrize(
    ("before", "asks", "has_it"),
    [
        ("", "isinstance(part, nn.BatchNorm2d)", False),
        ("", "isinstance(part, (nn.Linear, nn.BatchNorm2d))", False),
        ("", "type(part) == nn.BatchNorm2d", False),
        ("", "type(part) in [nn.BatchNorm1d, nn.BatchNorm2d]", False),
        ("", "part.__class__ is nn.BatchNorm2d", False),
        ("from torch.nn import BatchNorm2d", "isinstance(part, BatchNorm2d)", False),
        ("import torch\n\nnet.load_state_dict(torch.load('net.pt'))", "isinstance(part, nn.BatchNorm2d)", False),
        # models that may have it, for all that is seen
        ("import torch\n\nnet = torch.load('net.pt')", "isinstance(part, nn.BatchNorm2d)", True),
        ("from somewhere import net", "isinstance(part, nn.BatchNorm2d)", True),
        ("from torch.nn import BatchNorm2d\n\nnorm = BatchNorm2d", "isinstance(part, BatchNorm2d)", True),
        ("", "isinstance(part, nn.BatchNorm2d) or nn.BatchNorm2d(4)", True),
    ],
)
def test_a_class_that_is_only_asked_for_makes_no_layer(before: str, asks: str, has_it: bool) -> None:
    assert normalizes([script_of(f"{before}\n{ASKS.format(asks=asks)}")]) is has_it


@pytest.mark.parametrize(
    ("made", "has_it"),
    [
        ("timm.models.vision_transformer.Block(8, 2)", False),
        ("timm.models.vision_transformer.VisionTransformer()", False),
        ("timm.models.swin_transformer.SwinTransformer()", False),
        ("timm.models.layers.trunc_normal_(x)", False),
        ("timm.models.layers.drop.DropPath(0.1)", False),
        ("models.vision_transformer.VisionTransformer()", False),
        ("timm.models.vision_transformer_hybrid.HybridEmbed(net)", True),
        ("timm.models.layers.ConvBnAct(4, 4)", True),
        ("timm.models.resnet.BasicBlock(4, 4)", True),
        ("models.vgg.VGG(layers)", True),
    ],
)
def test_parts_of_models_of_libraries_are_known_by_their_files(made: str, has_it: bool) -> None:
    assert normalizes([script_of(f"{HEAD}model = {made}\n")]) is has_it
