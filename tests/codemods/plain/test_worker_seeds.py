"""Workers of loaders that are seeded with a number draw other noise on each rank (DDP655)."""

from __future__ import annotations

import pytest

from .test_followed import plain, training

MADE = "train_loader = DataLoader(train_set, batch_size=8,"
WORKERS = "def seed_worker(worker):\n    random.seed({})\n\n\n"
SOURCE = training().replace(MADE, f"{WORKERS}{MADE} num_workers=2, worker_init_fn=seed_worker,", 1)


@pytest.mark.parametrize(
    ("seed", "becomes"),
    [
        ("3 + worker", '3 + worker + 1000 * int(os.environ["RANK"])'),
        ("worker + args.seed", 'worker + args.seed + 1000 * int(os.environ["RANK"])'),
        ("worker", 'worker + 1000 * int(os.environ["RANK"])'),
    ],
)
def test_the_rank_is_added_to_a_number(seed: str, becomes: str) -> None:
    options = "import argparse\n\nargs = argparse.ArgumentParser().parse_args()\n\n\ndef seed_worker("
    source = SOURCE.replace("{}", seed).replace("def seed_worker(", options, 1)
    assert f"def seed_worker(worker):\n    random.seed({becomes})\n" in plain(source).code


def test_other_engines_say_so() -> None:
    result = plain(SOURCE.replace("{}", "3 + worker"), "horovod")
    assert "    random.seed(3 + worker)\n" in result.code
    assert any("seeds the workers of all ranks alike" in each.message for each in result.findings)
