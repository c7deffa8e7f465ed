"""What a run leaves behind, read back."""

from __future__ import annotations

import pickle
from pathlib import Path

from ddpify.verify.runs import Batch, Run, read_records


def test_records_are_read_as_far_as_they_were_written(tmp_path: Path) -> None:
    with (tmp_path / "rank1.pkl").open("wb") as stream:
        pickle.dump(("names", (0, "SGD", ["Net.weight"])), stream)
        pickle.dump(("batch", (1, (3, 4))), stream)
        trace = ("float32", b"\x00\x00\x80?", 1.0, "")
        pickle.dump(("step", {"optimizer": 0, "params": [trace, None], "grads": [], "buffers": []}), stream)
        stream.write(pickle.dumps(("remark", "cut off"))[:-5])
    (record,) = read_records(tmp_path).values()
    assert record.names == {0: ["Net.weight"]} and record.kinds == {0: "SGD"}
    assert record.batches == [Batch(1, (3, 4))] and record.remarks == []
    (step,) = record.steps
    assert step.params[0][0].tolist() == [1.0] and step.params[1] is None and step.batches == 1


def test_a_rank_without_a_record_has_no_steps(tmp_path: Path) -> None:
    assert Run(0, "", "", read_records(tmp_path), {}).steps(3) == []
