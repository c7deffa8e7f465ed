"""What is made of samples that lie one behind the other in one tensor."""

from __future__ import annotations

import pytest
from ddpify_codemods.result import Result

from tests.codemods.plain.test_followed import plain, refusals

BAGS = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader


def collate(batch):
    texts, labels = zip(*batch)
    lengths = [len(t) for t in texts]
    return torch.cat(texts), torch.tensor([0] + lengths[:-1]).cumsum(0), torch.tensor(labels)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.words, self.out = nn.EmbeddingBag(9, 4), nn.Embedding(9, 4), nn.Linear(4, 3)

    def forward(self, texts, offsets):
        return {}


data = [(torch.randint(9, (n % 5 + 1,)), n % 3) for n in range(48)]
loader = DataLoader(data, batch_size=12, shuffle=True, collate_fn=collate)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for texts, offsets, y in loader:
    loss = F.cross_entropy(model(texts, offsets), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BAG = "self.out(self.bag(texts, offsets))"


def bags(body: str) -> Result:
    return plain(BAGS.replace("{}", body))


@pytest.mark.parametrize(
    "body",
    [
        BAG,
        BAG.replace("offsets)", "offsets=offsets)"),
        BAG.replace("texts,", "texts.long(),"),
        "self.out(F.embedding_bag(texts, self.bag.weight, offsets))",
        BAG + ".log_softmax(1)",
    ],
)
def test_an_embedding_bag_has_a_row_for_each_sample(body: str) -> None:
    result = bags(body)
    assert not refusals(result)
    assert "loss = F.cross_entropy(ddp_model(texts, offsets), y)" in result.code


@pytest.mark.parametrize(
    "body",
    [
        BAG.replace("texts,", "texts[1:],"),
        BAG.replace("texts,", "texts[texts > 0],"),
        BAG.replace("texts,", "texts.flip(0),"),
        BAG.replace("(texts, offsets)", "(offsets, offsets)"),
        "self.out(self.words(texts))[: len(offsets)]",
        "self.out(self.words(texts)).cumsum(0)[offsets]",
        "self.out(self.bag(texts, offsets)) * self.words(texts).mean()",
        "self.out(self.bag(texts, offsets)) * offsets[:, None]",
    ],
)
def test_what_takes_samples_for_others_is_refused(body: str) -> None:
    assert refusals(bags(body))


def test_an_evaluation_is_divided_by_samples() -> None:
    evaluation = """\
hits = 0
test_loader = DataLoader(data, batch_size=12, collate_fn=collate)
with torch.no_grad():
    for texts, offsets, y in test_loader:
        hits += (model(texts, offsets).argmax(1) == y).sum().item()
print(hits)
"""
    result = plain(BAGS.replace("{}", BAG) + evaluation)
    assert not refusals(result)
    assert "sampler=range(dist.get_rank(), len(data), dist.get_world_size())" in result.code


CTC = BAGS.replace("return {}", "return self.out(self.words(texts))").replace("self, texts, offsets", "self, texts")
CTC = CTC.replace("torch.tensor([0] + lengths[:-1]).cumsum(0), torch.tensor(labels)", "torch.tensor(lengths)")
CTC = CTC.replace("return torch.cat(texts)", "return torch.stack(labels), torch.cat(texts)").replace(
    "n % 3)", "torch.ones(7))"
)
CTC = CTC.replace("texts, offsets, y in loader", "x, texts, lengths in loader")
CTC = CTC.replace("F.cross_entropy(model(texts, offsets), y)", "{}")
LOSS = "F.ctc_loss(model(x.long()).transpose(0, 1).log_softmax(2), texts, torch.full((len(x),), 7), lengths{})"


@pytest.mark.parametrize("more", ["", ", reduction='sum'"])
def test_a_ctc_loss_takes_the_targets_of_each_sample(more: str) -> None:
    assert not refusals(plain(CTC.replace("{}", LOSS.format(more))))
    criterion = LOSS.format("").replace("F.ctc_loss(", f"nn.CTCLoss({more[2:]})(")
    assert not refusals(plain(CTC.replace("{}", criterion)))


def test_the_parts_of_a_batch_are_moved_one_by_one() -> None:
    moved = CTC.replace("for x, texts, lengths in loader:\n", "for batch in loader:\n{moves}")
    moves = "    x, texts, lengths = {}each.to('cpu') for each in batch{}\n"
    for opened, closed in ("[]", "()"):
        source = moved.replace("{moves}", moves.format(opened, closed)).replace("{}", LOSS.format(""))
        assert not refusals(plain(source))
    source = moved.replace("{moves}", moves.format("[", " if len(each)]")).replace("{}", LOSS.format(""))
    assert refusals(plain(source))


def test_another_loss_does_not() -> None:
    assert refusals(plain(CTC.replace("{}", "F.mse_loss(model(texts).sum(1), texts.float())")))


@pytest.mark.parametrize(
    "layer", ["nn.TransformerEncoderLayer(4, 2, 8)", "nn.Conv1d(4, 4, 3, padding=1)", "nn.LSTM(4, 4)"]
)
def test_samples_in_one_tensor_that_a_layer_takes_for_one_sequence_are_refused(layer: str) -> None:
    conv = "self.bag(self.words(texts).t().unsqueeze(0)).squeeze(0).t()"
    run = conv if "Conv" in layer else "self.bag(self.words(texts))" + "[0]" * ("LSTM" in layer)
    program = BAGS.replace("nn.EmbeddingBag(9, 4)", layer).replace("{}", f"self.out({run})")
    program = program.replace("torch.tensor(labels)", "torch.cat(labels)").replace(
        "n % 3)", "torch.randint(3, (n % 5 + 1,)))"
    )
    assert refusals(plain(program.replace(", y)", ', y, reduction="sum")')))


def test_a_loss_that_adds_up_what_each_of_their_rows_has() -> None:
    program = BAGS.replace("{}", "self.out(self.words(texts))").replace("torch.tensor(labels)", "torch.cat(labels)")
    program = program.replace("n % 3)", "torch.randint(3, (n % 5 + 1,)))").replace(", y)", ', y, reduction="sum")')
    assert not refusals(plain(program))
