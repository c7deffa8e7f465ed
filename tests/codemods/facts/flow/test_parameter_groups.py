"""What is put into the groups of an optimizer that is made."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.test_given_parameters import program
from tests.codemods.plain.test_followed import plain, refusals

MADE = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
PUT = [
    "optimizer.param_groups[0]['params'].append(head.kernel)",
    "optimizer.param_groups[0]['params'].extend(head.parameters())",
    "optimizer.param_groups[0]['params'] += [head.kernel]",
    "optimizer.param_groups[0]['params'] = [*net.parameters(), head.kernel]",
    "optimizer.param_groups[0]['params'][0] = head.kernel",
    "for g in optimizer.param_groups:\n    g['params'].append(head.kernel)",
    "for g in optimizer.param_groups:\n    g['params'] = g['params'] + [head.kernel]",
    "for g in optimizer.param_groups:\n    params = g['params']\n    params += [head.kernel]",
    "optimizer.param_groups.append({'params': [head.kernel], 'lr': 0.2})",
    "optimizer.param_groups += [{**optimizer.param_groups[0], 'params': [head.kernel]}]",
    "optimizer.param_groups[0] = {**optimizer.param_groups[0], 'params': [head.kernel]}",
    "optimizer.param_groups = [{**optimizer.param_groups[0], 'params': [head.kernel]}]",
    "optimizer.param_groups[0].update(params=[head.kernel])",
    "optimizer.param_groups[0].update({'params': [head.kernel]})",
]
SET = [
    "optimizer.param_groups[0]['lr'] = 0.2",
    "for g in optimizer.param_groups:\n    g['lr'] *= 0.5\n    g.update(momentum=0.9)\n    g.setdefault('lr', 0.1)",
    "for g in optimizer.param_groups:\n    for key, value in {'lr': 0.2}.items():\n        g[key] = value",
    "rates = [g['lr'] for g in optimizer.param_groups]\nrates.append(0.1)",
    "rates = []\nfor g in optimizer.param_groups:\n    rates.append(g['lr'])\n    rates += [g['lr']]",
    "params = [p for g in optimizer.param_groups for p in g['params']]\nparams.append(head.kernel)",
    "with torch.no_grad():\n    for g in optimizer.param_groups:\n        for p in g['params']:\n            p *= 0.5",
]


@pytest.mark.parametrize("put", PUT)
def test_what_is_put_into_groups_is_refused(put: str) -> None:
    assert refusals(plain(program(MADE + put)))


@pytest.mark.parametrize("done", SET)
def test_rates_are_read_and_set(done: str) -> None:
    result = plain(program(MADE + done, "net(x)"))
    assert not refusals(result) and "ddp_net(x)" in result.code
