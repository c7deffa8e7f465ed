"""Programs that compute on a GPU, and those that only speak of one."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.named_devices import names_gpu

from tests.codemods.checks import script_of

_CHOICE = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'


@pytest.mark.parametrize(
    "lines",
    [
        f"device = {_CHOICE}\nmodel.to(device)",
        f"def train(model, device):\n    model.to(device)\ntrain(model, {_CHOICE})",
        "model.cuda()",
        "device = 'cpu'\nif args.gpu:\n    device = f'cuda:{args.gpu}'\nmodel.to(device)",
        "torch.set_default_tensor_type(torch.cuda.FloatTensor)",
        "layers = map(torch.nn.Module.cuda, layers)",
        "model.to(args.device)",
        "model.to(DEVICE)",
        "def train(model, device='cpu'):\n    model.to(device)",
        "device = torch.device(args.device)",
        "use_cuda = True\nif use_cuda:\n    model.cuda()",
        "use_cuda = False\nif args.gpu:\n    use_cuda = True\nif use_cuda:\n    model.cuda()",
        "use_cuda = False\ndevice = 'cpu' if not use_cuda else 'cpu'\nmodel.to('cuda')",
    ],
)
def test_a_gpu_is_named(lines: str) -> None:
    assert names_gpu([script_of(f"import torch\n{lines}")])


@pytest.mark.parametrize(
    "lines",
    [
        "print(torch.cuda.is_available())",
        "torch.cuda.manual_seed_all(0)\nmodel.load_state_dict(torch.load('m.pt', map_location='cpu'))",
        "model.load_state_dict(torch.load('m.pt', map_location={'cuda:0': 'cpu'}))",
        "device = 'cpu'\nmodel.to(device)\nprint(device == 'cuda')",
        "device = torch.device('cpu')\ndef train(model, device):\n    model.to(device)\ntrain(model, device)",
        "class A:\n    def __init__(self):\n        self.device = torch.device('cpu')\n        model.to(self.device)",
        f"cuda = False\nif cuda:\n    device = {_CHOICE}\nelse:\n    device = 'cpu'\nmodel.to(device)",
        "use_cuda = False\ndevice = torch.device('cuda' if use_cuda else 'cpu')\nmodel.to(device=device)",
        "use_cuda = False\nif not use_cuda:\n    pass\nelse:\n    model.cuda()",
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return x + self.mask.to(x.device)",
    ],
)
def test_a_gpu_is_only_spoken_of(lines: str) -> None:
    assert not names_gpu([script_of(f"import torch\n{lines}")])
