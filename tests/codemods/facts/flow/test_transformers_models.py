"""Models of transformers: what is known of their losses, and of what collates their batches."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.facts.flow.transformers_models import class_name, collates

from tests.codemods.checks import script_of
from tests.codemods.plain.test_followed import plain, refusals, undivided

SCRIPT = """\
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset
from transformers import (
    AutoModelForSequenceClassification,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    default_data_collator,
)

torch.manual_seed(0)
data = TensorDataset(torch.randint(50, (64, 12)), torch.ones(64, 12), torch.randint(3, (64,)))
collator = DataCollatorWithPadding(tokenizer=tokenizer)
loader = DataLoader(data, sampler=RandomSampler(data), batch_size=8)
model = BertForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for epoch in range(3):
    for ids, mask, labels in loader:
        outputs = model(ids, attention_mask=mask, labels=labels)
        loss = outputs.loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
CALL = "outputs = model(ids, attention_mask=mask, labels=labels)\n        loss = outputs.loss\n"
OF_TOKENS = SCRIPT.replace("BertForSequenceClassification.from", "BertForMaskedLM.from")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("BertForMaskedLM.from_pretrained(path)", "BertForMaskedLM"),
        ("BertForMaskedLM(config)", "BertForMaskedLM"),
        ("AutoModelForSequenceClassification.from_config(config)", "AutoModelForSequenceClassification"),
        ("torch.nn.Linear(4, 3)", ""),
        ("old.BertForSequenceClassification.from_pretrained(path)", "BertForSequenceClassification"),
        ("old.BertForMaskedLM.from_pretrained(path)", ""),
    ],
)
def test_the_class_of_a_model(code: str, name: str) -> None:
    script = script_of(SCRIPT + "import pytorch_transformers as old\n" + code + "\n")
    (made,) = (node.value for node in script.tree.body[-1:] if isinstance(node, ast.Expr))
    assert isinstance(made, ast.Call) and class_name(script, made) == name


@pytest.mark.parametrize(
    ("code", "keeps"),
    [
        ("default_data_collator", True),
        ("DataCollatorWithPadding(tokenizer)", True),
        ("DataCollatorForLanguageModeling(tokenizer)", False),
        ("DataCollatorForLanguageModeling(tokenizer, mlm=False)", True),
        ("tokenizer.pad", False),
    ],
)
def test_what_collates_each_sample(code: str, keeps: bool) -> None:
    script = script_of(SCRIPT + code + "\n")
    (made,) = (node.value for node in script.tree.body[-1:] if isinstance(node, ast.Expr))
    assert collates(script, made) is keeps


@pytest.mark.parametrize(
    ("takes", "code", "keeps"),
    [
        ("ids = batch['input_ids']", "DataCollatorWithPadding(tokenizer)", False),
        ("ids, mask = batch.input_ids, batch.attention_mask", "DataCollatorWithPadding(tokenizer)", True),
        ("ids = batch['input_ids']", "default_data_collator", True),
    ],
)
def test_what_pads_is_known_where_its_masks_are_used(takes: str, code: str, keeps: bool) -> None:
    script = script_of(f"{SCRIPT}{takes}\n{code}\n")
    (made,) = (node.value for node in script.tree.body[-1:] if isinstance(node, ast.Expr))
    assert collates(script, made) is keeps


INSIDE = """\
class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = {}
        self.out = torch.nn.Linear(16, 3)

    def forward(self, ids, mask):
        {}
        return self.out(hidden)


model = Classifier()
"""


@pytest.mark.parametrize(
    ("made", "line", "left"),
    [
        ("BertModel(config)", "hidden = self.bert(ids, attention_mask=mask).last_hidden_state[:, 0]", True),
        ("BertModel.from_pretrained(name)", "hidden = self.bert(ids, mask)[0][:, 0]", True),
        ("BertModel(config, add_pooling_layer=False)", "hidden = self.bert(ids, mask)[0][:, 0]", False),
        ("BertModel(config)", "hidden = self.bert(ids, mask).pooler_output", False),
        ("BertModel(config)", "_, hidden = self.bert(ids, mask, return_dict=False)", False),
        ("BertModel(config)", "hidden = self.bert(ids, mask)[1]", False),
        ("BertModel(config)", "out = self.bert(ids, mask); hidden = out[1]", False),
        ("BertModel(config)", "width = ids.shape[1]; hidden = self.bert(ids, mask)[0][:, 0]", True),
        ("DistilBertModel(config)", "hidden = self.bert(ids, mask)[0][:, 0]", False),
        ("XLNetModel(config)", "hidden = self.bert(ids, mask)[0][:, 0]", True),
    ],
)
def test_a_wrapper_is_told_of_poolers_that_are_not_trained(made: str, line: str, left: bool) -> None:
    """It would wait for the gradients of their parameters."""
    script = SCRIPT.replace("BertModel,", "BertModel, DistilBertModel, XLNetModel,")
    first, second = 'model = BertForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=3)\n', CALL
    script = script.replace(first, INSIDE.format(made, line))
    script = script.replace(second, "loss = torch.nn.functional.cross_entropy(model(ids, mask), labels)\n")
    result = plain(script)
    assert not refusals(result)
    assert ("find_unused_parameters=True" in result.code) is left


@pytest.mark.parametrize(
    "call",
    [
        CALL,
        CALL.replace("outputs.loss", "outputs[0]"),
        CALL.replace("outputs.loss", 'outputs["loss"]'),
        "loss, logits = model(ids, attention_mask=mask, labels=labels, return_dict=False)\n",
        "loss, logits = model(ids, mask, labels=labels)[:2]\n",
        'batch = {"input_ids": ids, "labels": labels}\n        loss = model(**batch).loss\n',
        CALL + "        print((outputs.logits.argmax(-1) == labels).sum().item())\n",
        "outputs = model(ids, mask)\n        loss = torch.nn.functional.cross_entropy(outputs.logits, labels)\n",
        "outputs = model(ids, mask)\n        loss = torch.nn.functional.cross_entropy(outputs[0], labels)\n",
    ],
)
def test_the_loss_is_a_mean_over_samples(call: str) -> None:
    result = plain(SCRIPT.replace(CALL, call))
    assert "ddp_model(" in result.code and "DistributedSampler(data, shuffle=True)" in result.code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("BertForSequenceClassification.from", "BertForPreTraining.from"),
        ("BertForSequenceClassification.from", "BertModel.from"),
        ("labels=labels)", "labels=torch.where(labels > 1, labels, -100))"),
        ("loss = outputs.loss", "loss = outputs.loss + outputs.logits.std()"),
        ("batch_size=8)", "batch_size=8, collate_fn=DataCollatorForLanguageModeling(tokenizer))"),
        ("batch_size=8)", "batch_size=8, collate_fn=tokenizer.pad)"),
    ],
)
def test_other_losses_and_batches_are_refused(before: str, after: str) -> None:
    assert undivided(plain(SCRIPT.replace(before, after)))


def test_all_tokens_are_labels() -> None:
    code = plain(OF_TOKENS.replace("labels=labels", "labels=ids")).code
    assert "ddp_model(ids, attention_mask=mask, labels=ids)" in code and "-100" not in code


def test_what_pads_a_batch_of_a_rank_is_no_label() -> None:
    script = OF_TOKENS.replace("labels=labels", "labels=ids").replace(
        "batch_size=8)", "batch_size=8, collate_fn=collator)"
    )
    assert refusals(plain(script))


def test_an_entry_of_a_dictionary_is_no_attribute() -> None:
    call = 'batch = {"items": mask, "labels": labels}\n        batch = {k: v for k, v in batch.items()}\n'
    assert not refusals(plain(SCRIPT.replace("outputs = ", call + "        outputs = ")))


@pytest.mark.parametrize(
    "call",
    [
        "loss = model(ids, labels=labels).loss\n",
        "loss = model(ids, labels=labels)[0]\n",
        "outputs = model(ids, labels=labels, return_dict=False)\n        loss = outputs[0]\n",
        "outputs = model(ids, labels=labels)[:2]\n        loss = outputs[0]\n",
        "outputs = model(ids, labels=tagged(ids))\n        loss = outputs.loss\n",
        "labels = model(ids, labels=labels)\n        loss = labels.loss\n",
    ],
)
def test_a_loss_over_tokens_that_cannot_be_weighed_there(call: str) -> None:
    assert refusals(plain(OF_TOKENS.replace(CALL, call)))


@pytest.mark.parametrize("collator", ["collator", "default_data_collator"])
def test_collators_with_masks(collator: str) -> None:
    assert not refusals(plain(SCRIPT.replace("batch_size=8)", f"batch_size=8, collate_fn={collator})")))


def test_what_pads_is_told_of_and_needs_masks_in_all_files() -> None:
    script = SCRIPT.replace("batch_size=8)", "batch_size=8, collate_fn=collator)")
    assert any("pads to the longest of its own" in each.message for each in plain(script).findings)
    loop = "    for ids, mask, labels in loader:\n"
    assert loop in script
    script = "from helpers import take\n" + script.replace(
        loop, "    for batch in loader:\n        ids, mask, labels = take(batch)\n"
    )
    for mask, refused in (("mask", True), ("attention_mask", False)):
        helpers = f"def take(batch):\n    return batch['input_ids'], batch['{mask}'], batch['labels']\n"
        found = convert({Path("train.py"): script, Path("helpers.py"): helpers}, "cpu", style="plain")
        assert bool(refusals(found[Path("train.py")])) is refused


def test_optimizers_of_the_library() -> None:
    script = SCRIPT.replace("torch.optim.AdamW", "AdamW").replace("    BertModel,", "    AdamW,\n    BertModel,")
    assert "ddp_model = DistributedDataParallel(model)\noptimizer" in plain(script).code
