"""What parameters get of a batch that is given part by part."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD as BEGIN
from tests.codemods.plain.test_followed import plain, refusals

HEAD = BEGIN[: BEGIN.index("model = ")]
NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x, y{more}):
        return F.cross_entropy(self.layer(x), y)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in train_loader:
    loss = model({given})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize("given", ["*batch", "*[each.cpu() for each in batch]", "*tuple(each.cpu() for each in batch)"])
def test_a_network_is_given_the_parts_of_a_batch(given: str) -> None:
    result = plain(HEAD + NET.format(more="", given=given))
    assert not refusals(result)
    assert f"loss = ddp_model({given})" in result.code


@pytest.mark.parametrize("more", [", z=None", ", *rest"])
def test_networks_that_may_take_another_number_of_them_are_refused(more: str) -> None:
    assert refusals(plain(HEAD + NET.format(more=more, given="*[each.cpu() for each in batch]")))


def test_samples_that_are_given_one_by_one_are_refused() -> None:
    found = refusals(plain(HEAD + NET.format(more="", given="*[each for each in batch[0]]")))
    assert any("how many values there are depends on this rank" in each for each in found)
