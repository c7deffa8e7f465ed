"""Hooks that count operations, and those that training may notice."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from ddpify_codemods.facts.flow.hooks import only_counts, only_keeps

from tests.codemods.checks import script_of

COUNT = """\
import torch


def count(model):
    counts = []

    def hook(module, input, output):
        batch, width = input[0].size()
        counts.append(batch * width * module.weight.nelement())

    model.register_forward_hook(hook)
    model(torch.rand(1, 4))
    return sum(counts)
"""


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("", "", True),
        ("    return sum(counts)", "    return counts", False),
        ("    return sum(counts)", "    model.counts = counts", False),
        ("    return sum(counts)", "    return lambda: counts[-1]", False),
        ("counts = []", "counts = model.counts", False),
        ("batch, width =", "module.seen =", False),
        ("batch * width *", "output.mean() *", False),
        ("batch, width = input[0].size()", "batch = 1\n        width = 2\n        output *= batch", False),
        ("counts.append(batch * width * module.weight.nelement())", "return output * 2", False),
        ("    model(torch.rand(1, 4))", "    model(torch.rand(1, 4)).sum().backward()", False),
    ],
)
def test_a_count_stays_in_the_function_around_it(before: str, after: str, counts: bool) -> None:
    script = script_of(COUNT.replace(before, after))
    (hook,) = (node for node in script.find(ast.FunctionDef) if node.name == "hook")
    assert only_counts(script, hook) is counts


def test_a_hook_of_a_file_is_followed_by_nobody() -> None:
    script = script_of("seen = []\n\n\ndef hook(module, input, output):\n    seen.append(input[0].size(0))\n")
    (hook,) = script.find(ast.FunctionDef)
    assert not only_counts(script, hook)


KEEPS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}
        self.layer.register_forward_hook(self.keep("layer"))

    def keep(self, name):
        def hook(module, input, output):
            self.kept[name] = output.detach()

        return hook


"""


@pytest.mark.parametrize(
    ("before", "after", "keeps"),
    [
        ("", "", True),
        ("output.detach()", "output[0].cpu()", True),
        ("output.detach()", "output.mean()", False),
        ("self.kept[name] = output.detach()", "output.data = self.kept", False),
        ("self.kept[name] =", "module.running_mean =", False),
        ("self.kept[name] =", "self.kept[name] = self.last =", False),
        ("self.kept[name] = output.detach()", "return output.detach()", False),
        ("        return hook", "        print(self.kept)\n        return hook", False),
        ("        return hook", "        print(getattr(self, 'kept'))\n        return hook", False),
        ("\n\n\n", "\n\n\nif __name__ == '__main__':\n    print(Net().kept)\n", False),
    ],
)
def test_a_hook_that_keeps_what_nothing_reads(before: str, after: str, keeps: bool) -> None:
    script = script_of(KEEPS.replace(before, after, 1))
    (hook,) = (node for node in script.find(ast.FunctionDef) if node.name == "hook")
    assert only_keeps([script], hook) is keeps


def test_what_an_imported_file_does_as_a_script_reads_nothing() -> None:
    script = script_of(f"{KEEPS}if __name__ == '__main__':\n    print(Net().kept)\n")
    (hook,) = (node for node in script.find(ast.FunctionDef) if node.name == "hook")
    assert only_keeps([replace(script, is_entry=False)], hook)
