"""Where rank 0 goes on behind a `try` if it cannot write a file, no other rank waits for that (DDP607)."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def save(path):
    {write}


train()
for number in range(2):
    {call}
model.load_state_dict(torch.load("1.pt"))
train()
"""
WRITE = "torch.save(model.state_dict(), path)"
CALL = "save(f'{number}.pt')"
TRY = "try:\n        {}\n    except {}:\n        {}"


@pytest.mark.parametrize("kind", ["Exception", "OSError", "(ValueError, RuntimeError)"])
def test_a_try_around_the_call_is_refused(kind: str) -> None:
    (refusal,) = refusals(plain(SCRIPT.format(write=WRITE, call=TRY.format(CALL, kind, "pass"))))
    assert "goes on behind a `try`" in refusal and "(line 23)" in refusal


@pytest.mark.parametrize(
    ("write", "call"),
    [
        (WRITE, CALL),
        (TRY.format(WRITE, "OSError", "pass"), TRY.format(CALL, "Exception", "pass")),
        (WRITE, TRY.format(CALL, "Exception", "raise")),
        (WRITE, TRY.format(CALL, "KeyboardInterrupt", "pass")),
        (WRITE, TRY.format(CALL, "KeyError", "pass")),
    ],
)
def test_others_are_converted(write: str, call: str) -> None:
    result = plain(SCRIPT.format(write=write, call=call))
    assert not refusals(result) and "dist.barrier()" in result.code


def test_the_last_thing_of_a_run_may_fail() -> None:
    text = SCRIPT.format(write=WRITE, call="train()").partition("\ntrain()\nfor")[0]
    main = "\ndef main():\n    train()\n    save('1.pt')\n    model.load_state_dict(torch.load('1.pt'))\n\n\n"
    ends = "try:\n    main()\nexcept Exception as error:\n    print(error)\n"
    assert not refusals(plain(text + main + ends))
    assert refusals(plain(text + main + ends + "train()\n"))
