"""Programs that train models of transformers, plain: what 2 and 3 ranks train and show is what one process does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="pip install '.[models]'")

SCRIPT = """\
import sys

sys.modules["torchvision"] = None  # it may be made for CUDA, and is not needed
import torch
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset
from transformers import {config}, {model}

torch.manual_seed(0)
ids = torch.randint(50, (70, 12))
mask = (torch.arange(12) < torch.randint(3, 12, (70, 1))).long()
labels = {labels}
train_data = TensorDataset(ids[:50], mask[:50], labels[:50])
eval_data = TensorDataset(ids[50:], mask[50:], labels[50:])
train_dataloader = DataLoader(train_data, sampler=RandomSampler(train_data), batch_size=12)
eval_sampler = SequentialSampler(eval_data)
eval_dataloader = DataLoader(eval_data, sampler=eval_sampler, batch_size=6)
model = {model}({config}({size}))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model.to("cpu")
for epoch in range(2):
    model.train()
    total = 0.0
    for batch in train_dataloader:
        batch = tuple(part.to("cpu") for part in batch)
        inputs = {{"input_ids": batch[0], "attention_mask": batch[1], "labels": batch[2]}}
        {calls}
        optimizer.zero_grad()
        loss.backward()
        total += loss.item()
        optimizer.step()
    print(epoch, total / len(train_dataloader))
    model.eval()
    eval_loss = 0.0
    for ids, mask, labels in eval_dataloader:
        with torch.no_grad():
            outputs = model(input_ids=ids, attention_mask=mask, labels=labels)
        eval_loss += outputs.loss.item()
    print(eval_loss / len(eval_dataloader))
torch.save(model.state_dict(), "model.pt")
"""
BERT = "vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, num_labels=3"
GPT = "vocab_size=50, n_embd=16, n_layer=2, n_head=2"
OF_SAMPLES = "torch.randint(3, (70,))"
OF_TOKENS = "torch.randint(3, (70, 12)).masked_fill(mask == 0, -100)"
PROGRAMS = {
    "a loss of samples": ("Bert", "ForSequenceClassification", BERT, OF_SAMPLES, "loss = model(**inputs).loss"),
    "a loss of tokens": (
        "Bert",
        "ForTokenClassification",
        BERT,
        OF_TOKENS,
        "outputs = model(**inputs)\n        loss, logits = outputs[:2]",
    ),
    "a loss of next tokens": (
        "GPT2",
        "LMHeadModel",
        GPT,
        "ids.masked_fill(mask == 0, -100)",
        "loss, logits = model(**inputs, return_dict=False)[:2]",
    ),
}


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_trained_is_that_of_one_process(name: str, ranks: int, tmp_path: Path) -> None:
    family, head, size, labels, calls = PROGRAMS[name]
    text = SCRIPT.format(config=f"{family}Config", model=family + head, size=size, labels=labels, calls=calls)
    (tmp_path / "before.py").write_text(text)
    command = [sys.executable, "-m", "ddpify", "verify", "before.py", "--style", "plain", "--target", "cpu"]
    found = subprocess.run([*command, "-n", str(ranks)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0 and "EQUAL: before.py" in found.stdout, found.stdout + found.stderr
