"""Models of transformers, which compute their loss themselves, and what collates their batches."""

from __future__ import annotations

import ast
from dataclasses import replace

from ..script import Script
from .values import Items, Value, made_of, of

# Whose loss is a mean over samples that count alike (the `forward` of each, in transformers 5).
_OF_SAMPLES = (
    "ForSequenceClassification",
    "ForMultipleChoice",
    "ForNextSentencePrediction",
    "ForImageClassification",
    "ForAudioClassification",
    "ForVideoClassification",
)
# Over tokens, or pixels, without those that are labelled -100.
_OF_TOKENS = (
    "ForCausalLM",
    "ForMaskedLM",
    "ForPreTraining",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForConditionalGeneration",
    "ForSeq2SeqLM",
    "ForSemanticSegmentation",
    "LMHeadModel",
)
_WEIGHS = "the model's own loss is a mean over what is labelled, of which the ranks have not equally much (L3)"
_COLLATES = frozenset(
    f"transformers.{place}{name}"
    for place in ("", "data.data_collator.")
    for name in ("default_data_collator", "DefaultDataCollator", "DataCollatorWithPadding")
)


def class_name(script: Script, made: ast.Call) -> str:
    """The class of a model that a call makes: `BertForMaskedLM.from_pretrained(name)`; "" where it is of no library."""
    func = made.func
    if isinstance(func, ast.Attribute) and func.attr in ("from_pretrained", "from_config"):
        func = func.value
    name = script.qualified(func)
    return name.rpartition(".")[2] if name.startswith("transformers.") else ""


def outputs(name: str, call: ast.Call, result: Value, leaves_out: bool) -> Value:
    """What a model of a class gives back for labels: its loss, and something for each sample.

    result: what it makes of a batch, if nothing is known of the model. leaves_out: whether labels may not count.
    """
    of_samples, of_tokens = (any(part in name for part in parts) for parts in (_OF_SAMPLES, _OF_TOKENS))
    if not any(word.arg in ("labels", None) for word in call.keywords) or not (of_samples or of_tokens):
        return result
    loss = replace(result, kind="mean")
    if (of_tokens and not _labels_are_inputs(call)) or leaves_out:
        loss = made_of("unknown", [result], reason=_WEIGHS)
    return of(Items("tuple", {0: loss, 1: result, "loss": loss, "logits": result}, result))


def _labels_are_inputs(call: ast.Call) -> bool:
    """Whether all tokens are labels, of which none is -100: `model(ids, labels=ids)`."""
    given = {word.arg: ast.unparse(word.value) for word in call.keywords}
    inputs = [ast.unparse(each) for each in call.args[:1]] + [given[name] for name in ("input_ids",) if name in given]
    return inputs == [given.get("labels")]


def collates(script: Script, node: ast.expr) -> bool:
    """Whether an expression is a collate function of transformers that gives a tensor a row for each sample.

    Where it pads to the longest sample, attention masks leave that out, whichever samples there are.
    """
    made = node.func if isinstance(node, ast.Call) else node
    return script.qualified(made) in _COLLATES
