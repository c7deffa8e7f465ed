"""Models of transformers, which compute their loss themselves, and what collates their batches."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from ..bindings import names_in
from ..script import Script
from .encodings import keeps_masks
from .values import Items, Value, made_of, of
from .weighing import is_repeatable

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
_KNOWN = (*_OF_SAMPLES, *_OF_TOKENS)
_PACKAGES = ("transformers", "pytorch_transformers", "pytorch_pretrained_bert")
_NEXT_TOKENS = ("ForCausalLM", "LMHeadModel")  # of which the first has no label
_OTHERWISE = ("ForPreTraining", "ForQuestionAnswering", "ForSemanticSegmentation")  # several losses, or another index
_WEIGHS = "the model's own loss is a mean over what is labelled, of which the ranks have not equally much (L3)"
_COLLATES = frozenset(
    f"transformers.{place}{name}"
    for place in ("", "data.data_collator.")
    for name in (
        "default_data_collator",
        "DefaultDataCollator",
        "DataCollatorWithPadding",
        "DataCollatorForTokenClassification",
        "DataCollatorForSeq2Seq",
    )
)
_OF_TEXTS = tuple(f"transformers.{place}DataCollatorForLanguageModeling" for place in ("", "data.data_collator."))


def is_model_class(name: str) -> bool:
    """Whether a name is that of a class of models of transformers, of which programs derive their own."""
    package, _, last = name.rpartition(".")
    return package.split(".")[0] in _PACKAGES and (
        last.endswith(("Model", "LMHeadModel")) or any(k in last for k in _KNOWN)
    )


def class_name(script: Script, made: ast.Call) -> str:
    """The class of a model that a call makes: `BertForMaskedLM.from_pretrained(name)`; "" where it is of no library."""
    func = made.func
    if isinstance(func, ast.Attribute) and func.attr in ("from_pretrained", "from_config"):
        func = func.value
    name = script.qualified(func)
    last = name.rpartition(".")[2]
    if name.startswith("pytorch_transformers."):  # whose ignored label is another one
        return last if any(part in last for part in _OF_SAMPLES) or last.endswith("Model") else ""
    return last if name.startswith("transformers.") else ""


# Their models have a layer behind the last one, for one output of each sample, unless they are told otherwise; of these
# others a backward pass leaves out some parameters in any case (both counted in transformers 5.23).
_POOLED = re.compile(
    r"(?:Auto|Bert|Roberta|XLMRoberta|XLMRobertaXL|Camembert|Albert|MPNet|Ernie|MobileBert|IBert|MegatronBert|RemBert"
    r"|Data2VecText|RobertaPreLayerNorm|ViT|DeiT|Beit|Esm)Model$"
)
_UNTRAINED = re.compile(r"(?:XLNet|BigBird|Longformer|FNet|LayoutLM|Dinov2)(?:Model$|For|LMHead)")


def leaves_parameters(script: Script, made: ast.Call, other: Script, call: ast.Call) -> bool:
    """Whether a backward pass leaves out parameters of a model, as those of a pooler whose output is not used.

    Args: the file and the call that makes the model, those that call it.
    """
    name = class_name(script, made)
    if _UNTRAINED.match(name):
        return True
    if not _POOLED.match(name) or any(word.arg == "add_pooling_layer" for word in made.keywords):
        return False
    to = other.parents[call]
    if isinstance(to, ast.Assign) and isinstance(to.targets[0], ast.Tuple):
        return False
    outputs = {ast.unparse(call)} | (
        {ast.unparse(each) for each in to.targets} if isinstance(to, ast.Assign) else set()
    )
    for node in ast.walk(other.scope(call)):
        if isinstance(node, ast.Attribute) and node.attr == "pooler_output":
            return False
        key = node.slice if isinstance(node, ast.Subscript) else None
        if not isinstance(key, ast.Constant):
            continue
        assert isinstance(node, ast.Subscript)
        if key.value == "pooler_output" or (key.value in (1, -1) and ast.unparse(node.value) in outputs):
            return False
    return True


def computes_loss(name: str, call: ast.Call) -> bool:
    """Whether a call gives labels to a model of a class whose loss is known."""
    return any(word.arg in ("labels", None) for word in call.keywords) and any(part in name for part in _KNOWN)


def weighs(name: str, call: ast.Call, leaves_out: bool) -> bool:
    """Whether the ranks' losses are means over what is not equally much. leaves_out: whether labels may not count."""
    return (any(part in name for part in _OF_TOKENS) and not inputs_are_labels(call)) or leaves_out


def inputs_are_labels(call: ast.Call) -> bool:
    """Whether each token is a label, of which none is -100: `model(ids, labels=ids)`."""
    given = {word.arg: ast.unparse(word.value) for word in call.keywords}
    inputs = [ast.unparse(each) for each in call.args[:1]] + [given[key] for key in ("input_ids",) if key in given]
    return inputs == [given.get("labels")]


def count_of_labels(name: str, script: Script, call: ast.Call) -> str:
    """What a batch has of labels that count; "" where that, or the loss, cannot be written again behind the call."""
    statement = script.parents[call]
    sliced = isinstance(statement, ast.Subscript) and ast.unparse(statement.slice).startswith(":")
    if sliced:
        statement = script.parents[statement]  # loss, logits = model(…)[:2]
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    returns = next((word.value for word in call.keywords if word.arg == "return_dict"), None)
    as_tuple = sliced or (isinstance(returns, ast.Constant) and returns.value is False)
    first = target.elts[0] if isinstance(target, ast.Tuple) else target
    if (
        target is None
        or not isinstance(first, ast.Name)
        or (as_tuple and first is target)
        or any(part in name for part in _OTHERWISE)
    ):
        return ""
    labels = next((word.value for word in call.keywords if word.arg in ("labels", None)), None)
    if labels is None or not is_repeatable(labels) or names_in(labels) & names_in(target):
        return ""
    code = ast.unparse(labels)
    if any(word.arg is None for word in call.keywords) and "labels" not in {word.arg for word in call.keywords}:
        code = f'{code}["labels"]'
    shifted = "[:, 1:]" if any(part in name for part in _NEXT_TOKENS) else ""
    return f"({code}{shifted} != -100).sum()"


def outputs(result: Value, weighs_otherwise: bool) -> Value:
    """What a model gives back for labels: its loss, and something for each sample.

    result: what it makes of a batch, if nothing is known of the model.
    """
    loss = made_of("unknown", [result], reason=_WEIGHS) if weighs_otherwise else replace(result, kind="mean")
    return of(Items("tuple", {0: loss, 1: result, "loss": loss, "logits": result}, result))


def several_outputs(result: Value) -> Value:
    """What a model gives back, in a tuple whose entries have names, too: something for each sample each."""
    return of(Items("tuple", {}, result))


def collates(script: Script, node: ast.expr) -> bool:
    """Whether an expression is a collate function of transformers that gives a tensor a row for each sample.

    Where it pads to the longest sample, attention masks leave that out, whichever samples there are.
    """
    made = node.func if isinstance(node, ast.Call) else node
    if pads(script, node) and not keeps_masks(script.nodes):
        return False
    if script.qualified(made) in _OF_TEXTS and isinstance(node, ast.Call):  # it masks by chance, otherwise
        masks = [word.value for word in node.keywords if word.arg == "mlm"]
        return any(isinstance(each, ast.Constant) and each.value is False for each in masks)
    return script.qualified(made) in _COLLATES


def pads(script: Script, node: ast.expr) -> bool:
    """Whether an expression is a collate function of transformers that pads to the longest of its samples."""
    name = script.qualified(node.func if isinstance(node, ast.Call) else node)
    return name in (*_COLLATES, *_OF_TEXTS) and "default" not in name.lower()
