"""Samples that a function takes by the numbers of a loop: those of all ranks."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.reading import takes_tensors

from tests.codemods.plain.test_followed import HEAD, plain, refusals, training

COUNTED = "\ndef show(x, y):\n    for i in range(4):\n        {}\n"


def in_loop(block: str) -> str:
    return training(step="optimizer.step()\n        " + block.rstrip().replace("\n", "\n        "))


@pytest.mark.parametrize(
    ("shows", "code"),
    [
        ("print(y[i])", "print(whole_batch(y)[i])"),
        ("print(x[i].mean(dim=0))", "print(whole_batch(x)[i].mean(dim=0))"),
        ("print(names[y[i]])", "print(names[whole_batch(y)[i]])"),
        ("print('yes' if y[i].item() else 'no')", "whole_batch(y)[i].item()"),
        ("print(x[2 * i + 1].sum(), y[len(y) - 1 - i])", "whole_batch(x)[2 * i + 1].sum(), whole_batch(y)[len(y) * "),
    ],
)
def test_a_function_takes_samples_by_their_numbers(shows: str, code: str) -> None:
    head = HEAD + "names = ['a', 'b', 'c']\n" + COUNTED.format(shows)
    result = plain(in_loop("show(x, y)").replace(HEAD, head))
    assert not refusals(result)
    assert code in result.code


TEXTS = """\
class Named(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.rand(4), index % 3, {names}


train_set = Named()
"""


@pytest.mark.parametrize("names", ["str(index)", "(str(index), 'a')", "torch.rand(2)"])
def test_what_may_be_texts_is_taken_whole(names: str) -> None:
    head = HEAD + TEXTS.format(names=names) + COUNTED.format("print(y[i])")
    head = head.replace("train_loader = ", "first = ") + "train_loader = DataLoader(train_set, batch_size=8)\n"
    result = plain(in_loop("show(x, z)").replace(HEAD, head).replace("for x, y in train", "for x, y, z in train"))
    assert not refusals(result)
    assert "print(whole_batch(y)[i])" in result.code
    assert "isinstance(value[0][0], str)" in result.code


def test_a_model_of_any_name_may_take_lists() -> None:
    assert takes_tensors("torch.nn.modules.linear.Linear")
    assert takes_tensors("torchvision.models.resnet18")
    assert not takes_tensors("torchvision.models.get_model")
    assert not takes_tensors("torchvision.models.detection.fasterrcnn_resnet50_fpn")
