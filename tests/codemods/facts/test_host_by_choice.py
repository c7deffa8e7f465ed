"""Programs that may train on the CPU where there is a GPU, and the usual ones, which do not."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.host_by_choice import may_stay_on_host

from tests.codemods.checks import script_of

_OPTION = "parser.add_argument('--device', default='cuda')\nargs = parser.parse_args()\n"


@pytest.mark.parametrize(
    "lines",
    [
        "device = torch.device('cpu' if args.cpu else 'cuda')\nmodel.to(device)",
        "use_cuda = args.cuda and torch.cuda.is_available()\ndevice = 'cuda' if use_cuda else 'cpu'\nmodel.to(device)",
        f"{_OPTION}device = torch.device(args.device)",
        f"{_OPTION}args.device = torch.device(args.device)",
        "device = torch.device(str(config.get('device', 'cpu')))",
        "model.to(settings['device'])",
        "if args.cuda:\n    model.cuda()",
        "model = model.cuda() if opt.use_gpu else model",
        "device = 'cpu'\nif args.gpu:\n    device = 'cuda'\nmodel.to(device)",
        "def choose(name):\n    return 'cuda' if name == 'big' else 'cpu'\ndevice = torch.device(choose(a))",
        "cuda = False\nif cuda:\n    device = 'cuda'\nelse:\n    device = 'cpu'\nmodel.to(device)",
        "settings = {'device': 'cuda' if args.cuda else 'cpu'}\nmodel.to(settings['device'])",
    ],
)
def test_a_choice_that_may_come_to_the_cpu(lines: str) -> None:
    assert may_stay_on_host([script_of(f"import torch\n{lines}")])


@pytest.mark.parametrize(
    "lines",
    [
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nmodel.to(device)",
        "device = 'cpu' if not torch.cuda.is_available() else 'cuda'\nmodel.to(device)",
        "use_cuda = torch.cuda.is_available()\ndevice = torch.device('cuda' if use_cuda else 'cpu')\nmodel.to(device)",
        "use_cuda = torch.cuda.is_available()\nif use_cuda:\n    model.cuda()",
        "class Loss(torch.nn.Module):\n    def forward(self, x):\n        return x.cuda() if GPU else x",
        "device = torch.device('cuda') if features.is_cuda else torch.device('cpu')\nx.to(device)",
        "cuda = True if torch.cuda.is_available() else False\nif cuda:\n    model.cuda()",
        "if torch.cuda.is_available():\n    device = 'cuda'\nelse:\n    device = 'cpu'\nmodel.to(device)",
        "device = 'cpu'\nif torch.cuda.is_available():\n    device = 'cuda'\nmodel.to(device)",
        "gpus = 1\ndevice = torch.device('cuda:0' if (torch.cuda.is_available() and gpus > 0) else 'cpu')",
        "device = 'cuda' if torch.cuda.device_count() > 0 else 'cpu'\nmodel.to(device)",
        "mps = torch.backends.mps.is_available()\n"
        "device = 'mps' if mps else 'cuda' if torch.cuda.is_available() else 'cpu'\nmodel.to(device)",
        "def train(model, device):\n    model.to(device)",
        "device = 'cuda'\nmodel.to(device)\nhost_device = 'cpu'\nout.to(host_device)",
        "class A:\n    device = 'cuda' if torch.cuda.is_available() else 'cpu'\nmodel.to(A.device)",
        "config = {'device': 'cuda'}\nmodel.to(config['device'])",
        "model.cuda()",
        "if epoch % 2 == 0:\n    x = x.cuda()",
        "def move(x, use_cuda):\n    return x.cuda() if use_cuda else x\nmove(x, torch.cuda.is_available())",
    ],
)
def test_the_usual_choices(lines: str) -> None:
    assert not may_stay_on_host([script_of(f"import torch\n{lines}")])
