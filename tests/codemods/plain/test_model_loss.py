"""The loss that a model of transformers computes weighs as much as its labels that count (DDP637)."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.test_transformers_models import CALL, OF_TOKENS, SCRIPT
from tests.codemods.plain.test_followed import plain


@pytest.mark.parametrize(
    ("call", "weighs"),
    [
        (CALL, "labelled = (labels != -100).sum()\n        outputs.loss = outputs.loss * labelled / mean_over_ranks("),
        (
            "loss, logits = model(ids, labels=labels, return_dict=False)\n",
            "labelled = (labels != -100).sum()\n        loss = loss * labelled / mean_over_ranks(labelled)\n",
        ),
        (
            "loss, logits = model(ids, labels=labels)[:2]\n",
            "labelled = (labels != -100).sum()\n        loss = loss * labelled / mean_over_ranks(labelled)\n",
        ),
        (
            'batch = {"input_ids": ids, "labels": labels}\n        out = model(**batch)\n        loss = out[0]\n',
            'labelled = (batch["labels"] != -100).sum()\n        out.loss = out.loss * labelled / mean_over_ranks(',
        ),
    ],
)
def test_a_loss_over_tokens_is_weighed(call: str, weighs: str) -> None:
    assert weighs in plain(OF_TOKENS.replace(CALL, call)).code
    shifted = plain(OF_TOKENS.replace("MaskedLM", "CausalLM").replace(CALL, call)).code
    assert "[:, 1:] != -100).sum()" in shifted


def test_a_loss_of_samples_is_weighed_where_labels_may_not_count() -> None:
    script = SCRIPT.replace("outputs = ", "labels = torch.where(labels > 1, labels, -100)\n        outputs = ")
    assert "labelled = (labels != -100).sum()" in plain(script).code


def test_an_evaluation_is_not_weighed() -> None:
    evaluation = """\
total = 0.0
for ids, mask, labels in DataLoader(data, batch_size=8):
    with torch.no_grad():
        outputs = model(ids, attention_mask=mask, labels=labels)
    total += outputs.loss.item()
print(total)
"""
    assert plain(OF_TOKENS + evaluation).code.count("-100") == 1
