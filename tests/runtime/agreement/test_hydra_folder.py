"""Hydra on several ranks: one folder, one log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.runtime.test_process_group import TORCHRUN

SCRIPT = """
import logging, os, time
import hydra
from ddpify_runtime import destroy_process_group, get_rank, init_process_group

log = logging.getLogger(__name__)

@hydra.main(version_base=None, config_path=None)
def main(config):
    log.info("begun")
    folder = hydra.core.hydra_config.HydraConfig.get().runtime.output_dir
    open(f"{get_rank()}.folder", "w").write(folder)

if __name__ == "__main__":
    init_process_group("gloo")
    time.sleep(1.1 * get_rank())
    main()
    destroy_process_group()
"""


def test_ranks_share_the_folder_and_rank_zero_writes_the_log(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, *TORCHRUN, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    folders = {(tmp_path / f"{rank}.folder").read_text() for rank in (0, 1)}
    assert len(folders) == 1
    (folder,) = map(Path, folders)
    assert [line.partition("] - ")[2] for line in (folder / "train.log").read_text().splitlines()] == ["begun"]
    assert done.stdout.count("begun") == 1


def test_a_process_without_hydra_is_asked_nothing() -> None:
    code = "import sys; from ddpify_runtime.agreement import hydra_folder; hydra_folder.agree()"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'hydra' not in sys.modules"], check=True, timeout=60)
