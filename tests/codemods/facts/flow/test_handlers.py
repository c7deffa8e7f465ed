"""Exceptions around a training: a rank that goes on and trains again leaves the others waiting."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.handlers import GOES_ON

from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
import sys
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(65, 4), torch.randint(3, (65,)))
model = torch.nn.Linear(4, 3)


def train(model, size):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(train_set, batch_size=size, shuffle=True):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


"""
AGAIN = "try:\n    train(model, 12)\nexcept {}:\n    {}\n"


def is_refused(lines: str) -> bool:
    return any(GOES_ON in each for each in refusals(plain(SCRIPT + lines)))


TRY = "for size in (12, 6):\n    try:\n        train(model, size)\n    except {}:\n        {}\n"
SWALLOWS = """\
class Stage:
    def __enter__(self):
        return self

    def __exit__(self, kind, *others):
        return {}


for size in (12, 6):
    with Stage():
        train(model, size)
"""
BATCH = """\
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
    try:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except {}:
        {}
"""
MEMORY = "if 'out of memory' in str(error):\n            {}\n        {}"
MEMORY_OF = "if len(memory) < 4:\n            {}\n        {}"
STEP = """\
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
EPOCHS = f"""\
class Enough(Exception):
    pass


def check(step):
    if step == 3:
        raise RuntimeError("enough")


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=12, shuffle=True)
for epoch in range(2):
    batches = iter(loader)
    try:
        for step, (x, y) in enumerate(loader):
{STEP}            {{}}
    except {{}}:
        print("enough")
"""


DATA = """\
import signal

class Own(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, place):
        assert place < 23
        return train_set[place]

def late(*_):
    raise TimeoutError

def save(path="model.pt"):
    model.train()
    torch.save(model.state_dict(), path)

def resume():
    model.load_state_dict(torch.load("model.pt"))

def attempt(does):
    try:
        does()
    except Exception:
        print("failed")

def run():
    train(model, 6)
    save()

"""
OF_OWN = f"""\
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    try:
        for x, y in DataLoader(Own(), batch_size=6):
{STEP}    except {{}}:
        print("left out")
"""
NEXT = f"""\
import contextlib
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_set = TensorDataset(torch.rand(72, 4), torch.randint(3, (72,)))
loader = DataLoader(train_set, batch_size=12, shuffle=True)
batches = iter(loader)
with contextlib.suppress({{}}):
    while True:
            x, y = next(batches)
{STEP}"""
ENDED = "import contextlib\ndef run():\n    with contextlib.suppress(Exception):\n        train(model, 12)\n\n\nrun()\n"


@pytest.mark.parametrize(
    "lines",
    [
        AGAIN.format("torch.cuda.OutOfMemoryError", "train(model, 6)"),
        DATA + OF_OWN.format("MemoryError") + "run()\n",
        DATA + AGAIN.format("torch.cuda.OutOfMemoryError", "run()"),  # which trains again, and saves what that gives
        EPOCHS.format("next(batches)", "torch.OutOfMemoryError"),
        EPOCHS.format("check(step)", "torch.OutOfMemoryError"),
        AGAIN.format("(MemoryError, torch.OutOfMemoryError)", "train(model, 6)"),
        AGAIN.format("Exception as error", "train(model, 6)"),
        TRY.format("Exception as error", "continue"),
        TRY.format("RuntimeError as error", MEMORY.format("continue", "raise")),
        TRY.format("KeyboardInterrupt", "break\n    except Exception:\n        print('one less')"),
        "def run(size):\n    try:\n        train(model, size)\n    except Exception:\n        print(size)\n\n\n"
        "for size in (12, 6):\n    run(size)\n",
        "try:\n    try:\n        train(model, 12)\n    except MemoryError:\n        train(model, 6)\n"
        "except Exception:\n    print()\n",
        BATCH.format("torch.cuda.OutOfMemoryError", "print('left out')"),
        BATCH.format("RuntimeError as error", MEMORY.format("continue", "raise")),
        BATCH.format(
            "RuntimeError as error", "if 'memory' not in str(error):\n            raise\n        print('left out')"
        ),
        EPOCHS.format("print(step)", "Exception"),
    ],
)
def test_an_error_that_ends_the_run(lines: str) -> None:
    result = plain(SCRIPT + lines)
    assert not refusals(result)
    assert result.code.count("    raise  # the other ranks wait for this one") == result.code.count(
        "get_world_size() > 1:"
    )
    assert "get_world_size() > 1:" in result.code


@pytest.mark.parametrize(
    "lines",
    [
        # what the script means to come
        AGAIN.format("(ValueError, RuntimeError)", "train(model, 6)"),
        EPOCHS.format("if step == 3: raise Enough", "Enough"),
        EPOCHS.format("if step == 3: raise Enough", "Exception"),
        EPOCHS.format("check(step)", "RuntimeError"),
        EPOCHS.format("assert step < 3", "Exception"),
        EPOCHS.format("next(batches)", "Exception"),
        EPOCHS.format("if step == 3: sys.exit()", "Exception"),
        f"class MemoryError(Exception):\n    pass\n\n\n{AGAIN.format('MemoryError', 'train(model, 6)')}",
        f"from other import Stop as RuntimeError\n{AGAIN.format('RuntimeError', 'train(model, 6)')}",
        EPOCHS.format("if step == 3: raise MemoryError", "MemoryError"),
        EPOCHS.format("if step == 3: raise torch.OutOfMemoryError", "(MemoryError, torch.OutOfMemoryError)"),
        "class Big(torch.OutOfMemoryError):\n    pass\n\n\n"
        + EPOCHS.format("if step == 3: raise Big", "torch.OutOfMemoryError"),
        EPOCHS.format("batches.__next__()", "Exception"),
        DATA + OF_OWN.format("Exception"),
        DATA.replace("assert place < 23", "")
        + "signal.signal(signal.SIGALRM, late)\n"
        + TRY.format("Exception", "print(size)"),
        # what reads files
        DATA + "try:\n    resume()\n    train(model, 12)\nexcept Exception:\n    train(model, 6)\n",
        TRY.replace("train(", "open('sizes')\n        train(").format("RuntimeError", "print(size)"),
        DATA + "for does in (resume, run):\n    attempt(does)\n",
        DATA.replace("assert place < 23", "")
        + "for each in range(2):\n    attempt(lambda: train(model, 6))\nattempt(lambda: print())\n",
        # an end that a person asks for is among them
        AGAIN.format("BaseException", "train(model, 6)"),
        "try:\n    train(model, 12)\nexcept:\n    train(model, 6)\n",
        # the batch may be to blame
        BATCH.format("Exception", "continue"),
        BATCH.format("RuntimeError as error", "print(error)"),
        BATCH.format("RuntimeError as error", MEMORY.format("raise", "continue")),
        BATCH.format("RuntimeError as error", MEMORY.format("print()", "continue")),
        BATCH.format(
            "RuntimeError as error",
            MEMORY.replace("str(error)", "str(error) or len(x) < 12").format("continue", "raise"),
        ),
        "memory = []\n" + BATCH.format("RuntimeError as error", MEMORY_OF.format("continue", "raise")),
        # as long as it takes
        TRY.replace("size)", "size)\n        break").format("torch.cuda.OutOfMemoryError", "continue"),
        TRY.replace("for size in (12, 6)", "size = 12\nwhile True").format("MemoryError", "size //= 2"),
        "def fits(size):\n    try:\n        train(model, size)\n        return True\n    except MemoryError:\n"
        "        return False\n\n\nfor size in (12, 6):\n    if fits(size):\n        break\n",
        # what comes first, or would be lost
        TRY.format("Exception", "print()\n    finally:\n        print(size)"),
        TRY.format("Exception", "torch.save(model.state_dict(), 'model.pt')"),
        DATA + TRY.format("torch.OutOfMemoryError", "save()"),
        TRY.replace("except", "except*").format("RuntimeError", "print()"),
        "import contextlib\nfor size in (12, 6):\n"
        "    with contextlib.suppress(RuntimeError):\n        train(model, size)\n",
        NEXT.format("StopIteration, RuntimeError") + "train(model, 6)\n",
        SWALLOWS.format("True"),
        SWALLOWS.format("kind is not None"),
        SWALLOWS.format("not issubclass(kind, KeyError)"),
        SWALLOWS.replace("kind, *others", "*told").format("not told"),
        "import contextlib\n@contextlib.contextmanager\ndef trying():\n    try:\n        yield\n"
        "    except RuntimeError:\n        print()\n"
        "for size in (12, 6):\n    with trying():\n        train(model, size)\n",
        "import contextlib\nfor size in (12, 6):\n    with contextlib.ExitStack() as stack:\n"
        "        stack.enter_context(contextlib.suppress(RuntimeError))\n        train(model, size)\n",
        "def safe(size):\n    try:\n        check()\n        train(model, size)\n"
        "    except ValueError:\n        return None\n"
        "def check():\n    raise ValueError\nsafe(12)\nsafe(6)\n",
        ENDED + "run()\n",
        ENDED + "train(model, 6)\n",
    ],
)
def test_what_stays_refused(lines: str) -> None:
    assert is_refused(lines)


@pytest.mark.parametrize(
    "lines",
    [
        "for size in (12, 6):\n    try:\n        train(model, size)\n    except EOFError:\n        break\n",
        AGAIN.format("ValueError", "sys.exit(1)"),
        AGAIN.format("ValueError", "print('no')\n    raise"),
        AGAIN.format("Exception as error", "print(error)"),  # the end of the run
        AGAIN.format("KeyboardInterrupt", "train(model, 6)"),
        NEXT.format("StopIteration") + "print('end')\n",
        SWALLOWS.format("kind is None"),
        SWALLOWS.format("not kind"),
        SWALLOWS.format("kind is None and self.quiet"),
        SWALLOWS.format("False or not kind"),
        "try:\n    train(model, 12)\nexcept RuntimeError:\n    print()\ntrain(model, 6)\n",
        ENDED + "print('end')\n",
        "try:\n    n = int('3')\nexcept ValueError:\n    n = 4\ntrain(model, n)\n",
        "for size in (12, 6):\n    try:\n        train(model, size)\n    except ValueError:\n        sys.exit(1)\n",
    ],
)
def test_what_ends_the_run_stays(lines: str) -> None:
    assert not is_refused(lines)
    assert not refusals(plain(SCRIPT + lines))
