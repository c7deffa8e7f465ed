"""What the original is given in the place of its own batches."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ddpify.verify import processes
from ddpify.verify.runs import Record
from ddpify.verify.unions import unions


def test_the_ranks_parts_in_the_order_of_the_sampler() -> None:
    ranks = [Record(), Record()]
    ranks[0].lengths = {0: 2}
    ranks[0].drawn = {0: [[[1, 3, 5], [7]]]}
    ranks[1].drawn = {0: [[[2, 4], [8]]]}
    assert json.loads(unions(ranks))["drawn"] == {"0": [2, [[[1, 2, 3, 4, 5], [7, 8]]]]}


def test_a_rank_that_has_no_batch_left() -> None:
    ranks = [Record(), Record()]
    ranks[0].lengths = {0: 2}
    ranks[0].drawn = {0: [[[1], [3]]]}
    ranks[1].drawn = {0: [[[2]]]}
    assert json.loads(unions(ranks))["drawn"] == {"0": [2, [[[1, 2], [3]]]]}


IN_ORDER = """
import json
import sys
from pathlib import Path
from pathlib import Path

from ddpify_recorder import unions
from torch.utils.data import DataLoader, RandomSampler

Path("unions.json").write_text(json.dumps({"drawn": {}, "in_order": [0]}))
unions.give(Path("unions.json"))
samples = list(range(5))
loaders = [DataLoader(samples, 2, shuffle=True), DataLoader(samples, 2, sampler=RandomSampler(samples, num_samples=3))]
for loader in loaders:
    loader._ddpify_number = 0
    print([len(batch) for batch in loader._index_sampler], list(loader._index_sampler)[:1] == [[0, 1]])
    print(type(loader._index_sampler.sampler).__name__)
"""


def test_only_what_takes_each_sample_once_goes_in_order(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    environment = processes.environment(tmp_path / "record", [])
    code, out, said = processes.execute([sys.executable, "-c", IN_ORDER], tmp_path, environment, 120.0)
    lines = out.splitlines()
    assert code == 0, said
    assert lines[:2] == ["[2, 2, 1] True", "SequentialSampler"]
    assert lines[2].startswith("[2, 1]") and lines[3] == "RandomSampler"


ORIGINS = """
from ddpify_recorder import unions
from torch.utils.data import DataLoader, Subset

def origin(data):
    return unions.origin(DataLoader(data))

samples, found = list(range(8)), []
for fold in range(20):
    part = Subset(samples, list(range(fold % 4)))
    assert origin(part) == origin(part)
    found.append(origin(part))
    del part
print(len(set(found)), origin(samples) == origin(samples))
"""


def test_a_data_set_that_is_gone_is_not_the_next_one(tmp_path: Path) -> None:
    """Folds have the same id, one after the other."""
    (tmp_path / "record").mkdir()
    environment = processes.environment(tmp_path / "record", [])
    code, out, said = processes.execute([sys.executable, "-c", ORIGINS], tmp_path, environment, 120.0)
    assert (code, out.splitlines()) == (0, ["20 True"]), said
