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


STEP = """\
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step({parameters}):
    {body}
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


for batch in train_loader:
    print(step({given}).item())
"""


def of_step(body: str, parameters: str = "*args", given: str = "*batch") -> list[str]:
    return refusals(plain(HEAD + STEP.format(body=body, parameters=parameters, given=given)))


def test_what_is_unpacked_says_how_many_parts_a_function_takes() -> None:
    assert not of_step("x, y = args")
    assert not of_step("(y,) = args", "x, *args")


@pytest.mark.parametrize(
    "body",
    ["x, *y = args", "x, y = args[:2]", "x, y = args if len(args) == 2 else (args[0], args[1])", "x, y = z = args"],
)
def test_another_use_does_not(body: str) -> None:
    assert of_step(body)


def test_samples_that_are_unpacked_are_refused() -> None:
    assert of_step("x, y = args", given="*[each for each in batch[0]]")
    assert of_step("x, y = args", given="*batch[0].unbind(0)")
