"""DDP301: training frameworks distribute by themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

FRAMEWORKS = {
    "pytorch_lightning": "Lightning: set devices and strategy of its Trainer",
    "lightning": "Lightning: set devices and strategy of its Trainer",
    "accelerate": "Accelerate: start it with `accelerate launch`",
    "ignite": "Ignite: use ignite.distributed.Parallel and its auto_ methods",
    "deepspeed": "DeepSpeed: start it with `deepspeed`",
    "fairscale": "FairScale: it wraps the model itself",
    "fastai": "fastai: use its distrib_ctx",
    "composer": "Composer: start it with `composer`",
    "colossalai": "Colossal-AI: start it with `colossalai run`",
    "mmengine": "MMEngine: set the launcher of its Runner",
    "detectron2.engine": "detectron2: use its launch()",
    "catalyst": "Catalyst: choose a distributed engine",
    "transformers.Trainer": "the Trainer of transformers: start the script with torchrun as it is",
    "transformers.Seq2SeqTrainer": "the Trainer of transformers: start the script with torchrun as it is",
    "transformers.TrainingArguments": "the Trainer of transformers: start the script with torchrun as it is",
}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse a script that leaves its training loop to a framework."""
    for node in script.imports:
        for name in _imported_names(node):
            advice = next((text for key, text in FRAMEWORKS.items() if f"{name}.".startswith(f"{key}.")), None)
            if advice is not None:
                framework, _, remedy = advice.partition(": ")
                message = f"{framework} runs this training and distributes it by itself"
                yield Finding(RULE.id, "refused", node.lineno, message, remedy)
                return


def _imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


RULE = Rule(
    id="DDP301",
    title="Training frameworks stay as they are",
    why="""\
Lightning, Accelerate, Ignite, DeepSpeed and their like own the training loop and have their own switch for several
devices. A second layer below them would divide each batch twice (section R).""",
    before="""\
import pytorch_lightning as pl
import torch


class Net(pl.LightningModule):
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


pl.Trainer(max_epochs=1).fit(Net())
""",
    after="",
    check=check,
)
