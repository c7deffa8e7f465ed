"""What the recorder takes for noise."""

from __future__ import annotations

import sys
from pathlib import Path

from ddpify.verify import processes

SCRIPT = """
import numpy
from ddpify_recorder import neutral

def drawn(draw):
    numpy.random.seed(0)
    try:
        return list(numpy.ravel(draw(3)))
    except (TypeError, ValueError, AttributeError):
        return []

names = {name for name in dir(numpy.random.RandomState) if name.islower() and not name.startswith("_")}
names |= {"ranf", "sample"}  # of the module alone
names = {name for name in names if hasattr(numpy.random, name)} - {"seed", "get_state", "set_state"}
same = {name for name in names if drawn(getattr(numpy.random, name)) == drawn(numpy.random.rand)}
print(sorted(same - set(neutral._NUMPY_NOISE)), len(same))
"""


def test_every_name_of_numpys_uniform_numbers_is_known(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    environment = processes.environment(tmp_path / "record", [])
    code, out, said = processes.execute([sys.executable, "-c", SCRIPT], tmp_path, environment, 120.0)
    assert code == 0, said
    left, number = out.rsplit(maxsplit=1)
    assert left == "[]" and int(number) > 1


INDICES = """
import random
import numpy
from ddpify_recorder import neutral

class Drawn:
    def __getitem__(self, index):
        return random.random()

samples = neutral._Seeded(Drawn())
print(samples[5] == samples[numpy.int64(5)] == samples[numpy.arange(6)[5]], samples[5] == samples[6])
print(samples["a.png", 1] == samples["a.png", 1], samples["a.png", 1] == samples["a.png", 2])
"""


def test_samples_may_have_numbers_of_numpy_and_keys(tmp_path: Path) -> None:
    """`SubsetRandomSampler(train_ids)` of a KFold gives numpy's, which random.seed does not take."""
    (tmp_path / "record").mkdir()
    environment = processes.environment(tmp_path / "record", [])
    code, out, said = processes.execute([sys.executable, "-c", INDICES], tmp_path, environment, 120.0)
    assert (code, out) == (0, "True False\nTrue False\n"), said
