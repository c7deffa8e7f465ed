"""Loggers of rank 0: what the others have in their place, and what only rank 0 knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import notes, plain, refusals, training

MADE = "from torch.utils.tensorboard import SummaryWriter\nfrom visdom import Visdom\nlogger = {made}\n"


def logged(use: str, made: str = "SummaryWriter()", before: str = "") -> str:
    """A script that makes a logger, and uses it after training."""
    return training(after=use).replace("torch.manual_seed", MADE.format(made=made) + before + "torch.manual_seed", 1)


def test_what_only_calls_methods_is_called_on_rank_0() -> None:
    code = plain(logged("logger.close()\n")).code
    assert "logger = SummaryWriter() if dist.get_rank() == 0 else None\n" in code and "NoLogger" not in code
    assert "if dist.get_rank() == 0:\n    logger.close()\n" in code


def test_methods_of_what_a_logger_keeps_are_called_on_rank_0() -> None:
    run = {"made": "wandb.init()", "before": "import wandb\n"}
    code = plain(logged("logger.config.update({'a': 1})\n", **run)).code
    assert "if dist.get_rank() == 0:\n    logger.config.update({'a': 1})\n" in code
    use = "logger.config.update({'norm': model.weight.norm()})\n"
    code = plain(logged(use, "SummaryWriter()")).code
    assert "NoLogger()\n" in code and use in code


def test_an_artifact_is_recorded_on_rank_0() -> None:
    use = "model_file = wandb.Artifact('m')\nmodel_file.add_file('m.pt')\nwandb.log_artifact(model_file)\n"
    code = plain("import wandb\n" + training(after=use)).code
    assert "model_file = wandb.Artifact('m') if dist.get_rank() == 0 else None\n" in code
    assert "if dist.get_rank() == 0:\n    model_file.add_file('m.pt')\n    wandb.log_artifact(model_file)\n" in code


@pytest.mark.parametrize(
    ("made", "use", "sent"),
    [
        ("Visdom()", "if {}:\n    print(1)\n", "logger.check_connection()"),
        ("Visdom()", "window = {}\nif window:\n    print(window)\n", "logger.line([1], [2])"),
        ("SummaryWriter()", "import os\nos.makedirs({} + '/models', exist_ok=True)\n", "logger.log_dir"),
        ("SummaryWriter()", "def read(path):\n    return len(path)\nread({})\n", "logger.log_dir"),
        ("SummaryWriter()", "folder = {}\n", "logger.get_logdir()"),
        ("Visdom()", "def ask(other):\n    return {}\nprint(ask(logger))\n", "other.check_connection()"),
    ],
)
def test_what_a_logger_answers_is_sent_to_all(made: str, use: str, sent: str) -> None:
    result = plain(logged(use.format(sent), made))
    assert not refusals(result)
    assert use.format(f"from_rank_0({sent})") in result.code


def test_an_evaluation_that_asks_a_logger_is_whole() -> None:
    use = "for x, y in test_loader:\n    total += model(x).sum().item()\n    if {}:\n        break\nprint(total)\n"
    result = plain(logged(use.format("logger.check_connection()"), "Visdom()"))
    assert use.format("from_rank_0(logger.check_connection())") in result.code and notes(result)


def test_methods_that_a_class_takes_from_its_logger() -> None:
    shows = "from visdom import Visdom\nclass Shows:\n    def __init__(self):\n        self.viz = Visdom()\n"
    shows += "    def __getattr__(self, name):\n        return getattr(self.viz, name)\n"
    script = shows + training(after="shows = Shows()\nprint(shows.line([1], [2]))\n")
    assert "print(from_rank_0(shows.line([1], [2])))" in plain(script).code


def test_what_is_saved_is_computed_by_all() -> None:
    save = "from torchvision.utils import save_image\ndef bright(x):\n    return model(x) + 1\n"
    use = "save_image(bright(torch.ones(4)),\n           'last.png',\n           nrow=3)  # the last\n"
    code = plain(save + training(after=use)).code
    assert "images = bright(torch.ones(4))\nif dist.get_rank() == 0:\n    save_image(images,\n" in code


def test_what_comes_before_it_keeps_its_turn() -> None:
    use = "import numpy as np\ndef f(x):\n    return x\nnp.savez('a.npz', model.weight.tolist(), f(2), len('a'))\n"
    code = plain(training(after=use)).code
    assert "value = model.weight.tolist()\nvalue_ = f(2)\nif dist.get_rank() == 0:\n" in code
    assert "np.savez('a.npz', value, value_, len('a'))" in code


def test_a_picture_of_visdom_may_be_one_of_rank_0() -> None:
    step = "optimizer.step()\n        shown = x.T if epoch else x\n        logger.{}(shown.contiguous())"
    code = training(step=step).replace("torch.manual_seed", MADE.format(made="Visdom()") + "torch.manual_seed", 1)
    result = plain(code.replace("logger.{}", "logger.image"))
    assert not refusals(result) and any("samples of rank 0 alone" in each.message for each in result.findings)
    assert refusals(plain(code.replace("logger.{}", "logger.histogram")))


LOGS = """\
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
    {}
"""


@pytest.mark.parametrize(
    ("made", "silent"),
    [
        ("import logging\n", "logging.disable(logging.WARNING)"),
        ("from loguru import logger\n", 'logger.disable("")'),
        ("from loguru import logger as log\n", 'log.disable("")'),
    ],
)
def test_rank_0_logs(made: str, silent: str) -> None:
    code = plain(training().replace("import torch\n", f"{made}import torch\n", 1)).code
    assert LOGS.format(silent) in code


@pytest.mark.parametrize(
    ("made", "module", "silent"),
    [
        ("import logging\n\nlog = logging.getLogger()\n", "logging", "logging.disable(logging.WARNING)"),
        ("from logging import getLogger\n\nlog = getLogger()\n", "logging", "logging.disable(logging.WARNING)"),
        ("from loguru import logger as log\n", "loguru", 'loguru.logger.disable("")'),
    ],
)
def test_rank_0_logs_what_other_files_log(tmp_path: Path, made: str, module: str, silent: str) -> None:
    names = {name: tmp_path / f"{name}.py" for name in ("train", "say")}
    source = training().replace("import torch\n", "import say\nimport torch\n", 1)
    told = f"{made}\n\ndef tell(text):\n    log.info(text)\n"
    result = convert({names["train"]: source, names["say"]: told}, "cpu", style="plain", roots=(tmp_path,))
    code = result[names["train"]].code
    assert f"import {module}\n" in code and LOGS.format(silent) in code


@pytest.mark.parametrize(
    ("made", "use"),
    [
        ("import logging\n", "if logging.getLogger().isEnabledFor(logging.INFO):\n    print(total)\n"),
        ("from loguru import logger\n", "logger.opt(lazy=True).debug('{}', lambda: total)\n"),
    ],
)
def test_logs_that_decide_what_is_computed_are_the_same_on_every_rank(made: str, use: str) -> None:
    code = plain(training(after=use).replace("import torch\n", f"{made}import torch\n", 1)).code
    assert "dist.get_rank()" in code and ".disable(" not in code


def test_whether_a_logger_is_there_is_asked_by_its_name() -> None:
    shows = "class Shows:\n    def show(self, number):\n        try:\n            self.viz\n"
    shows += (
        "        except AttributeError:\n            self.viz = Visdom()\n        self.viz.line([number], [number])\n"
    )
    result = plain("from visdom import Visdom\n" + shows + training(after="Shows().show(1)\n"))
    assert not refusals(result)
    assert "            self.viz = Visdom() if dist.get_rank() == 0 else NoLogger()\n" in result.code
    asks = shows.replace("            self.viz\n", "            self.viz.port + 1\n")
    assert refusals(plain("from visdom import Visdom\n" + asks + training(after="Shows().show(1)\n")))
