"""Which layers, models and transforms draw numbers for their samples."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.noise import comes_with_dropout, has_noise, is_random_transform, names_dropout

from tests.codemods.checks import script_of

HEAD = "import kornia\nimport timm\nimport torch\nimport torchaudio\nimport torchvision\nfrom torch import nn\n"
NONE: frozenset[ast.AST] = frozenset()


@pytest.mark.parametrize(
    ("made", "drops"),
    [
        ("nn.LSTM(8, 8, 2, dropout=0.5)", True),
        ("nn.LSTM(8, 8, 2, True, True, rate)", True),
        ("nn.LSTM(8, 8, 2, True, True, 0)", False),
        ("nn.GRU(8, 8, dropout=0.0)", False),
        ("nn.TransformerEncoderLayer(8, 2)", True),
        ("nn.TransformerEncoderLayer(8, 2, 8, 0)", False),
        ("nn.TransformerDecoderLayer(8, 2, dropout=0)", False),
        ("nn.TransformerEncoder(layer, 2)", False),
        ("nn.Transformer(8)", True),
        ("nn.MultiheadAttention(8, 2, 0.1)", True),
        ("nn.MultiheadAttention(8, 2)", False),
        ("timm.create_model('vit', drop_path_rate=0.1)", True),
        ("torchvision.models.vit_b_16(attention_dropout=0.1)", True),
        ("torch.utils.data.DataLoader(data, drop_last=True)", False),
        ("torchvision.models.vgg19_bn(pretrained=True)", True),
        ("torchvision.models.vgg19_bn(pretrained=True).features", False),
        ("torchvision.models.vgg19()\ny = nn.Sequential(*x.features).eval()", False),
        ("torchvision.models.vgg19()\ny = nn.Sequential(*x.features, x.classifier)", True),
        ("torchvision.models.vgg19()\ny = x.features(x(image))", True),
        ("torchvision.models.efficientnet_b0().features", True),
        ("torchvision.models.resnet152()", False),
    ],
)
def test_layers_and_models_that_drop(made: str, drops: bool) -> None:
    script = script_of(f"{HEAD}x = {made}\n")
    assert comes_with_dropout(script) is has_noise(script, NONE, NONE) is drops


@pytest.mark.parametrize(
    ("made", "draws"),
    [
        ("nn.RReLU()", True),
        ("nn.functional.gumbel_softmax(x)", True),
        ("nn.FractionalMaxPool2d(2, output_size=2)", True),
        ("torchvision.ops.StochasticDepth(0.5, 'row')", True),
        ("torchaudio.transforms.TimeMasking(3)", True),
        ("kornia.augmentation.RandomErasing()", True),
        ("nn.ReLU()", False),
    ],
)
def test_other_noise(made: str, draws: bool) -> None:
    assert has_noise(script_of(f"{HEAD}x = {made}\n"), NONE, NONE) is draws


@pytest.mark.parametrize(
    ("made", "draws"),
    [
        ("torchvision.transforms.RandomCrop(8)", True),
        (
            "torchvision.transforms.Compose([t.ToTensor(), t.ColorJitter(1)])",
            True,
        ),
        ("torchvision.transforms.Compose([torchvision.transforms.ToTensor()])", False),
        ("other.RandomCrop(8)", False),
    ],
)
def test_transforms(made: str, draws: bool) -> None:
    assert is_random_transform(made.partition("(")[0], ast.parse(made, mode="eval").body) is draws


@pytest.mark.parametrize(
    ("made", "names"),
    [("nn.Dropout(0.1)", True), ("nn.functional.dropout(x)", True), ("A.Compose([A.CoarseDropout()])", False)],
)
def test_pictures_that_lose_parts_are_not_masked_by_dropout(made: str, names: bool) -> None:
    assert names_dropout(script_of(f"import albumentations as A\n{HEAD}x = {made}\n"), NONE) is names
