"""Libraries whose objects live on rank 0."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.on_rank_zero import kept_on_rank_zero, made_on_rank_zero

from tests.codemods.checks import node_of, script_of, sources_of

HEAD = "import optuna, sqlite3, wandb\n"


@pytest.mark.parametrize(
    ("lines", "call", "answer"),
    [
        ("run = wandb.init()", "wandb.init()", True),
        ("study = optuna.create_study()", "optuna.create_study()", True),
        ("raise optuna.TrialPruned()", "optuna.TrialPruned()", False),
        ("run.log({'x': wandb.Image(x)})", "wandb.Image(x)", False),
        ("kept['x'] = wandb.Histogram(x)", "wandb.Histogram(x)", False),
        ("api = wandb.Api()", "wandb.Api()", True),
        ("c = sqlite3.connect('a')\nc.execute('INSERT INTO t VALUES (1)')", "sqlite3.connect('a')", True),
        ("c = sqlite3.connect('a')\nc.execute('SELECT 1')", "sqlite3.connect('a')", False),
        ("x = torch.zeros(2)", "torch.zeros(2)", False),
    ],
)
def test_calls_that_rank_0_makes(lines: str, call: str, answer: bool) -> None:
    script = script_of(HEAD + lines)
    assert made_on_rank_zero(script, node_of(script, call)) is answer


def test_what_a_library_keeps_is_read() -> None:
    assert sources_of(kept_on_rank_zero(script_of(HEAD + "x = wandb.config.lr\nwandb.config = 3"))) == ["wandb.config"]
