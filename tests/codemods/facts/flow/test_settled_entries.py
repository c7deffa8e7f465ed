"""Batch sizes that are entries of dicts: divided where tensors are given them, if nothing changes them in between."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
{before}

def made(batch_size):
    data = TensorDataset(torch.zeros(24, 4), torch.zeros(24))
    return DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)


def fit(config):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = made(config["batch_size"])
    {line}
    for x, _ in loader:
        loss = (model(x) - torch.ones(config["batch_size"], 1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


settings = {{"batch_size": 8, "lr": 0.1}}
{first}
fit(settings)
{then}
"""
OF_OBJECT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, config):
        self.config = config
        self.model = torch.nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def other(self):
        {method}

    def fit(self):
        data = TensorDataset(torch.zeros(24, 4), torch.zeros(24))
        loader = DataLoader(data, batch_size=self.config["batch_size"], shuffle=True, drop_last=True)
        {line}
        for x, _ in loader:
            loss = (self.model(x) - torch.ones(self.config["batch_size"], 1)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


torch.manual_seed(0)
trainer = Trainer({{"batch_size": 8, "lr": 0.1}})
trainer.fit()
"""
OF_FUNCTIONS = """\
import copy
import torch
from torch.utils.data import DataLoader, TensorDataset


def made(config):
    data = TensorDataset(torch.zeros(24, 4), torch.zeros(24))
    return DataLoader(data, batch_size=config["batch_size"], shuffle=True, drop_last=True)


def fit(loader, config):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, _ in loader:
        loss = (model(x) - torch.ones(config["batch_size"], 1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
settings = {"batch_size": 8, "lr": 0.1}
other = settings
loader = made(settings)
fit(loader, other)
"""
HELPER = """\
def shrink(options, key="batch_size"):
    options[key] = 4

"""


def script(line: str = "pass", before: str = "", first: str = "", then: str = "") -> str:
    return SCRIPT.format(line=line, before=before, first=first, then=then)


@pytest.mark.parametrize(
    "source",
    [
        script(),
        script(first="for name, value in [('batch_size', 12)]:\n    settings[name] = value"),
        script(first="settings['batch_size'] = 12", then="settings['batch_size'] = 6"),
        script(line="config['lr'] = 0.2; config.update(lr=0.1); config.pop('lr')"),
        OF_OBJECT.format(method="pass", line="pass"),
        OF_FUNCTIONS,
    ],
)
def test_an_entry_that_stays_is_divided_as_a_name_is(source: str) -> None:
    result = plain(source)
    assert not refusals(result)
    assert 'config["batch_size"] // dist.get_world_size(), 1)' in result.code


@pytest.mark.parametrize(
    "source",
    [
        script(line="config['batch_size'] = 4"),
        script(line="config['batch_size'] -= 1"),
        script(line="config.update({'batch_size': 4})"),
        script(line="config.update(batch_size=4)"),
        script(line="config |= {'batch_size': 4}"),
        script(line="same = config; key = 'batch_size'; same[key] = 4"),
        script(line="shrink(config)", before=HELPER),
        script(line="config = dict(config, batch_size=4)"),
        script(line="inner = lambda: config.update(batch_size=4)\n    inner()"),
        script(first="shrink(settings)", before=HELPER),  # it may be called by fit, too
        OF_OBJECT.format(method="pass", line="self.config = {'batch_size': 4}"),
        OF_OBJECT.format(method="self.config = {'batch_size': 4}", line="self.other()"),
        OF_FUNCTIONS.replace("loader = made(settings)\n", "loader = made(settings)\nsettings['batch_size'] = 4\n"),
        OF_FUNCTIONS.replace("other = settings", "other = dict(settings, batch_size=4)"),
        OF_FUNCTIONS.replace("other = settings", "other = {**settings, 'batch_size': 4}"),
        OF_FUNCTIONS.replace("other = settings", "other = settings | {'batch_size': 4}"),
        OF_FUNCTIONS.replace("other = settings", "other = {'batch_size': 4}"),
        OF_FUNCTIONS.replace("other = settings", "other = settings.copy()\nfor key in other:\n    other[key] = 4"),
        OF_FUNCTIONS.replace("other = settings", "other = copy.deepcopy(settings)\nother.update(batch_size=4)"),
    ],
)
def test_an_entry_that_may_change_is_not_divided(source: str) -> None:
    result = plain(source)
    assert refusals(result)
