"""Where code sees that a model is inside an nn.DataParallel."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.parallel_names import SHOWS, sees_wrapper

from tests.codemods.checks import script_of


def sees(lines: str) -> bool:
    script = script_of(lines)
    calls = [each for each in script.find(ast.Call) if getattr(each.func, "attr", "") in SHOWS]
    return any(sees_wrapper(script, each) for each in calls)


@pytest.mark.parametrize(
    "lines",
    [
        "for child in net.children():\n    child.fc.weight",
        "for name, child in net.named_children():\n    print(name)",
        "list(net.modules())[2]",
        "for i, m in enumerate(net.modules()):\n    pass",
        "a = [p for n, p in net.named_parameters() if 'module.fc' in n]",
        "a = [p for n, p in net.named_parameters() if n.startswith('fc')]",
        "a = [p for n, p in net.named_parameters() if not n.startswith('module.fc')]",
        "for n, p in net.named_parameters():\n    if n == 'fc.weight':\n        pass",
        "for n, p in net.named_parameters():\n    if n in ['fc.weight']:\n        pass",
        "heads = ['module.fc']\na = [p for n, p in net.named_parameters() if any(h in n for h in heads)]",
        "a = list(filter(lambda pair: pair[0] in ['module.fc'], net.named_parameters()))",
        "params = dict(net.named_parameters())\nparams['module.fc.weight']",
        "for n, m in net.named_modules():\n    first = n.split('.')[1]",
        "for n, p in net.named_parameters():\n    parts = n.split('.')\n    parts[0]",
        "state = {k[7:]: v for k, v in net.state_dict().items()}",
        "state = net.state_dict()\nfor k in state:\n    new[k[len('module.'):]] = state[k]",
        "for i, (n, p) in enumerate(net.named_parameters()):\n    n[7:]",
        "net.load_state_dict({'module.' + k: v for k, v in saved.items()})",
        "new = {}\nfor k, v in saved.items():\n    new[f'module.{k}'] = v\nnet.load_state_dict(new)",
        "new = {}\nfor k, v in saved.items():\n    name = 'module.' + k\n    new[name] = v\nnet.load_state_dict(new)",
        "net.get_submodule('module.fc')",
        "if 'module.fc.weight' in net.state_dict():\n    pass",
    ],
)
def test_what_is_not_the_same_without_it(lines: str) -> None:
    assert sees(lines)


@pytest.mark.parametrize(
    "lines",
    [
        "for child in net.children():\n    for p in child.parameters():\n        p.requires_grad = False",
        "for m in net.modules():\n    if isinstance(m, nn.Conv2d):\n        pass",
        "a = [m for m in list(net.modules())]",
        "a = [p for n, p in net.named_parameters() if 'bias' in n]",
        "a = [p for n, p in net.named_parameters() if n.endswith('.bias')]",
        "no_decay = ['bias', 'LayerNorm.weight']\n"
        "a = [p for n, p in net.named_parameters() if not any(each in n for each in no_decay)]",
        "for n, p in net.named_parameters():\n    writer.add_histogram(n.replace('.', '/'), p)",
        "for n, p in net.named_parameters():\n    shadow[n] = p.clone()",
        "for n, m in net.named_modules():\n    last = n.split('.')[-1]",
        "state = {k.replace('module.', ''): v for k, v in net.state_dict().items()}",
        "state = {k[7:] if k.startswith('module.') else k: v for k, v in net.state_dict().items()}",
        "for k, v in net.state_dict().items():\n    if k.startswith('module.'):\n        k = k[7:]\n    new[k] = v",
        "torch.save(net.state_dict(), 'a.pt')",
        "net.load_state_dict(torch.load('a.pt'))",
        "net.load_state_dict({k[7:]: v for k, v in saved.items()})",
        "own = net.state_dict()\nown.update({k: v for k, v in saved.items() if k in own})\nnet.load_state_dict(own)",
        "own = net.state_dict()\nv = own['fc.weight']",
    ],
)
def test_what_is_the_same_without_it(lines: str) -> None:
    assert not sees(lines)
