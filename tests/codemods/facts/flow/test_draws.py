"""Which calls draw random numbers, and whose generators may be at another place on each rank."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.draws import changes, differs_on_ranks, drawn_for_samples, library_of

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("random.choice", "random"),
        ("numpy.random.permutation", "numpy"),
        ("numpy.random.lognormal", "numpy"),
        ("torch.randperm", "torch"),
        ("torch.utils.data.random_split", "torch"),
        ("torch.nn.init.normal_", "torch"),
        ("torch.nn.init.zeros_", ""),
        ("torch.zeros", ""),
        ("mine.choice", ""),
    ],
)
def test_whose_generator_a_function_draws_from(name: str, library: str) -> None:
    assert library_of(name) == library


@pytest.mark.parametrize(
    ("made", "has_it"),
    [
        ("transformers.AutoModelForMaskedLM.from_pretrained(name)", True),
        ("transformers.BertModel(config)", True),
        ("transformers.BertTokenizer.from_pretrained(name)", False),
        ("transformers.DataCollatorForLanguageModeling(tokenizer)", False),
        ("torchvision.models.vgg16()", True),
        ("torchvision.models.resnet18()", False),
    ],
)
def test_models_of_libraries_that_draw(made: str, has_it: bool) -> None:
    assert differs_on_ranks([script_of(f"import torchvision\nimport transformers\n\nmodel = {made}\n")]) is has_it


def test_what_changes_or_splits() -> None:
    assert changes("random.shuffle") and changes("torch.nn.init.normal_") and not changes("random.random")


def test_samples_that_draw() -> None:
    data = """
        import random
        from torch.utils.data import Dataset
        class D(Dataset):
            def __getitem__(self, i):
                return random.random()
    """
    assert "random" in drawn_for_samples([script_of(data)])
    assert not differs_on_ranks([script_of(data)])
    assert differs_on_ranks([script_of("import torch\nlayer = torch.nn.Dropout(0.1)")])


NETWORKS = """\
import torch.nn as nn


class Drops(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 3)
"""


def test_networks_that_nothing_uses_draw_nothing() -> None:
    networks = script_of(NETWORKS, is_entry=False)
    assert not differs_on_ranks([script_of("from networks import Drops, Net\n\nNet()\n"), networks])
    assert differs_on_ranks([script_of("from networks import Drops, Net\n\nDrops()\n"), networks])


def test_networks_that_only_evaluate_drop_nothing() -> None:
    script = script_of(NETWORKS.replace("nn.Linear(3, 3)", "Drops()"))
    drops = next(each for each in script.tree.body if getattr(each, "name", "") == "Drops")
    assert differs_on_ranks([script])
    assert not differs_on_ranks([script], frozenset({drops}))
