"""Runs of wandb that are asked for something are begun on every rank, disabled on all but rank 0 (DDP657)."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training
from tests.codemods.plain.test_loggers import logged

DISABLED = 'mode=None if dist.get_rank() == 0 else "disabled"'


@pytest.mark.parametrize(
    ("use", "becomes"),
    [
        ("logger.config.update({'norm': model.weight.norm()})\n", ""),
        ("print(logger.config.lr)\n", ""),
        ("print(logger.config.get('lr'))\n", ""),
        ("print(logger.name)\n", "print(from_rank_0(logger.name))\n"),
        ("print(wandb.run.get_url())\n", "print(from_rank_0(wandb.run.get_url()))\n"),
        (
            "torch.save(model.state_dict(), wandb.run.dir + '/a.pt')\nprint(wandb.config.lr)\n",
            "wandb.run.dir + '/a.pt')\n",
        ),
        ("wandb.summary['norm'] = 1\nlogger.finish()\nwandb.finish()\n", ""),
    ],
)
def test_a_run_that_is_asked_for_something_is_begun_everywhere(use: str, becomes: str) -> None:
    result = plain(logged(use, "wandb.init()", "import wandb\n"))
    assert f"logger = wandb.init({DISABLED})\n" in result.code and (becomes or use) in result.code
    assert not refusals(result)


def test_whether_there_is_a_run_is_the_same_on_all_ranks() -> None:
    use = "if wandb.run is not None:\n    wandb.log({'norm': model(x).sum().item()})\n"
    code = plain("import wandb\n" + training(after="wandb.init(mode='offline')\n" + use)).code
    assert "wandb.init(mode='offline' if dist.get_rank() == 0 else \"disabled\")" in code
    assert "if wandb.run is not None:\n" in code


@pytest.mark.parametrize(
    ("made", "begun"),
    [
        ("lr = wandb.init().config.lr\n", f"lr = wandb.init({DISABLED}).config.lr\n"),
        ("with wandb.init() as run:\n    lr = run.config.lr\n", f"with wandb.init({DISABLED}) as run:\n"),
        ("wandb.init(mode='disabled')\nlr = wandb.config.lr\n", "wandb.init(mode='disabled')\n"),
        ("wandb.init()\nwandb.log({'a': 1})\n", "if dist.get_rank() == 0:\n    wandb.init()\n"),
        ("wandb.init(**{'a': 1})\nlr = wandb.config.lr\n", ""),
    ],
)
def test_how_a_run_is_begun(made: str, begun: str) -> None:
    result = plain("import wandb\n" + training(after=made))
    assert begun in result.code if begun else refusals(result)
