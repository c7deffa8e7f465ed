"""What rank 0 alone computes, for what it writes or logs: no other rank comes to a collective in it."""

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training
from tests.codemods.plain.test_loggers import logged

IMPORTS = "import logging, os, shutil\nfrom pathlib import Path\nimport numpy as np\n"
FOLDER = "logger.log_dir"


@pytest.mark.parametrize(
    "use",
    [
        "logging.basicConfig(filename=os.path.join({}, 'a.log'))\n",
        "logging.FileHandler(os.path.join({}, 'a.log'))\n",
        "torch.save(model.state_dict(), os.path.join({}, 'a.pt'))\n",
        "torch.save(model.state_dict(), f'{{{}}}/a.pt')\n",
        "torch.save(bright(model), os.path.join({}, 'a.pt'))\n",
        "np.savetxt({} + '/a.txt', [1, 2])\n",
        "np.savez({}, bright(model))\n",
        "shutil.copy('train.py', {})\n",
        "with open(os.path.join({}, 'a'), 'w') as file:\n    file.write('a')\n",
        "with Path({}).open('w') as file:\n    file.write('a')\n",
        "(Path({}) / 'a').write_text('a')\n",
        "other = Visdom()\nother.text({})\n",
        "other = SummaryWriter({} + '/other')\nother.close()\n",
    ],
)
def test_rank_0_asks_its_own_logger_for_what_it_writes(use: str) -> None:
    given = "def bright(x):\n    return x\n"
    result = plain(IMPORTS + given + logged(use.format(FOLDER)))
    assert not refusals(result)
    assert FOLDER in result.code and "from_rank_0" not in result.code


@pytest.mark.parametrize(
    ("use", "computed"),
    [
        ("torch.save(bright({}), 'a.pt')\n", "bright({})"),
        ("np.savez(Path({}), bright(model))\n", "value = Path({})\nvalue_ = bright(model)\n"),
        ("logging.basicConfig(filename=os.path.join('a', 'b'), format={})\n", "format={}"),
    ],
)
def test_what_all_ranks_compute_is_told_by_rank_0(use: str, computed: str) -> None:
    given = "def bright(x):\n    return len(x)\n"
    result = plain(IMPORTS + given + logged(use.format(FOLDER)))
    assert not refusals(result)
    assert computed.format(f"from_rank_0({FOLDER})") in result.code


@pytest.mark.parametrize(
    ("use", "before"),
    [
        ("with open(f'{{{}}}.txt', 'w') as file:\n            file.write('a')\n", "with open("),
        ("with Path(f'{{{}}}.txt').open('w') as file:\n            file.write('a')\n", "with (Path("),
        ("open(f'{{{}}}.txt', 'w').write('a')\n", "open("),
        ("file = open(f'{{{}}}.txt', 'w')\n", "file = open("),
        ("logging.FileHandler(f'{{{}}}.log')\n", "logging.FileHandler("),
    ],
)
@pytest.mark.parametrize("number", ["loss.item()", "meter.avg"])
def test_numbers_in_paths_are_brought_together_before(number: str, use: str, before: str) -> None:
    meter = "class Meter:\n    def __init__(self):\n        self.sum = self.n = self.avg = 0\n"
    meter += "    def update(self, value):\n        self.sum += value\n        self.n += 1\n"
    meter += "        self.avg = self.sum / self.n\nmeter = Meter()\n"
    step = "optimizer.step()\n        meter.update(loss.item())\n        " + use.format(number)
    result = plain(IMPORTS + meter + training(step=step))
    assert not refusals(result)
    name = "mean_loss" if number == "loss.item()" else "mean_meter"
    assert f"        {name} = mean_over_ranks({number})\n        {before}" in result.code
    assert result.code.count(f"mean_over_ranks({number})") == 1


def test_a_number_with_a_variable_of_its_own_is_refused() -> None:
    step = "optimizer.step()\n        losses.append(loss)\n        "
    step += "np.save('a.npy', [round(each.item(), 3) for each in losses])"
    assert refusals(plain(IMPORTS + "losses = []\n" + training(step=step)))


def test_a_function_that_rank_0_alone_calls_sends_no_names() -> None:
    path = "import time\ndef path(name):\n    return time.strftime('%S') + name\n"
    save = "torch.save(model.state_dict(), path('a'))\nwith open(path('b'), 'w') as file:\n    file.write('a')\n"
    result = plain(path + training(after=save))
    assert not refusals(result)
    assert "from_rank_0" not in result.code


@pytest.mark.parametrize("use", ["print(path('a'))\n", "print(*map(path, 'ab'))\n"])
def test_a_function_that_others_call_too_is_for_all_ranks(use: str) -> None:
    path = "import time\ndef path(name):\n    return time.strftime('%S') + name\n"
    code = plain(path + training(after=use)).code
    assert "return from_rank_0(time.strftime('%S')) + name" in code
    assert refusals(plain(path + training(after=use + "torch.save(model.state_dict(), path('a'))\n")))


@pytest.mark.parametrize("use", ["[round(each.avg, 3) for each in meters]", "[round(each.sum, 3) for each in meters]"])
def test_meters_with_a_variable_of_its_own_are_refused(use: str) -> None:
    meters = "class Meter:\n    def __init__(self):\n        self.sum = self.n = self.avg = 0\n"
    meters += "    def update(self, value, n):\n        self.sum += value * n\n        self.n += n\n"
    meters += "        self.avg = self.sum / self.n\nmeters = [Meter(), Meter()]\n"
    step = "optimizer.step()\n        [each.update(loss.item(), len(x)) for each in meters]\n        "
    assert refusals(plain(IMPORTS + meters + training(step=f"{step}np.save('a.npy', {use})")))
