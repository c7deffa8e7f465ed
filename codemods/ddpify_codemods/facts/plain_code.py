"""What conversions of the plain style write in torch's words, known again by origin and by its exact shape."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from .script import KEPT, Script

DIST = "torch.distributed"
WRAPPER = "torch.nn.parallel.DistributedDataParallel"
SHARDING = "torch.distributed.optim.ZeroRedundancyOptimizer"
FULLY_SHARD = "torch.distributed.fsdp.fully_shard"
METER = "over_ranks"
_SAMPLERS = frozenset({f"torch.utils.data.{module}DistributedSampler" for module in ("", "distributed.")})
_TO_ALL = "return total.to(value.device) if torch.is_tensor(value) else total.tolist()"
_SUM = f"total = torch.as_tensor(value).detach().clone()\ndist.all_reduce(total)\n{_TO_ALL}"
_SUM_OF_BATCHES = f"""\
total = torch.as_tensor(value).detach().clone()
total = total if isinstance(value, (list, torch.Tensor)) else total.double()
dist.all_reduce(total)
if hasattr(value, "__index__") and not torch.is_tensor(value) and total == total.round():
    return int(total)
{_TO_ALL}"""
_ARRAY = "if isinstance(value, numpy.ndarray):\n    return total.cpu().numpy()\n"
_TUPLE = "if isinstance(value, tuple):\n    return tuple(total.tolist())\n"
_MEAN = _SUM.replace("return", "total = total / dist.get_world_size()\nreturn", 1)
_OF_RANK_0 = "values = [value]\ndist.broadcast_object_list(values)\nreturn values[0]"
_GATHER = """\
part = torch.as_tensor(value).detach().contiguous()
parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
dist.all_gather(parts, part)
batch = torch.stack(parts, 1).flatten(0, 1)
if torch.is_tensor(value):
    return batch.to(value.device)
return batch.tolist() if isinstance(value, list) else batch.cpu().numpy()"""
_GATHER_ARRAYS = (
    _GATHER.partition("return batch.tolist()")[0]
    + """\
if isinstance(value, list):
    if value and torch.is_tensor(value[0]):
        return list(batch.to(value[0].device))
    return list(batch.cpu().numpy()) if value and hasattr(value[0], 'dtype') else batch.tolist()
return batch.cpu().numpy()"""
)
_GATHER_TEXTS = """\
if isinstance(value, (list, tuple)) and isinstance(value[0], str):
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, value)
    return [text for texts in zip(*parts) for text in texts]
"""
_SIZES = """\
shapes = [None] * dist.get_world_size()
dist.all_gather_object(shapes, part.shape)
if len(set(shapes)) > 1:
    raise ValueError(f'samples of several sizes are no batch: {shapes}')
"""
_GATHERS_SAMPLES = [
    texts + gather.replace("parts = [torch", sizes + "parts = [torch", 1)
    for texts in ("", _GATHER_TEXTS)
    for gather in (_GATHER, _GATHER_ARRAYS)
    for sizes in ("", _SIZES)
]
_DIFFERENTIABLE = (
    "return DifferentiableSum.apply(value)",
    "return DifferentiableSum.apply(value) / dist.get_world_size()",
    "return DifferentiableBatch.apply(value)",
)
_IN_EVALUATIONS = "if not torch.is_grad_enabled():\n    return value\n"
_MAX = _SUM.replace("total", "largest").replace("largest)", "largest, dist.ReduceOp.MAX)", 1).replace("tolist", "item")


def _of(sum_or_mean: str, array: bool, is_tuple: bool) -> str:
    """What brings together arrays of numpy, too, or tuples."""
    kinds = ", numpy.ndarray" * array + ", tuple" * is_tuple
    text = sum_or_mean.replace("torch.Tensor)", f"torch.Tensor{kinds})")
    before = "if hasattr" if "if hasattr" in text else _TO_ALL
    return text.replace(before, _ARRAY * array + _TUPLE * is_tuple + before)


_BODIES = frozenset(
    ast.unparse(ast.parse(each))  # as it is read
    for each in {
        *(_of(each, *more) for each in (_SUM, _SUM_OF_BATCHES, _MEAN) for more in product((False, True), repeat=2)),
        _MAX,
        _IN_EVALUATIONS + _MAX,
        _OF_RANK_0,
        *_GATHERS_SAMPLES,
        *_DIFFERENTIABLE,
    }
    | {_IN_EVALUATIONS + each for each in _DIFFERENTIABLE}
)
_SUMS = """\
@staticmethod
def forward(context, value):
    total = value.clone()
    dist.all_reduce(total)
    return total
backward = forward"""
_GATHERS = """\
@staticmethod
def forward(context, value):
    value = value.contiguous()
    parts = [torch.empty_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, value)
    return torch.stack(parts, 1).flatten(0, 1)
@staticmethod
def backward(context, gradient):
    total = gradient.clone()
    dist.all_reduce(total)
    return total[dist.get_rank()::dist.get_world_size()]"""
_LOADS = "return torch.utils.data.DataLoader(loader.dataset, batch_size=loader.batch_size"
_SAME_ARGUMENTS = "num_workers=loader.num_workers, collate_fn=loader.collate_fn, pin_memory=loader.pin_memory"
_SHARD = "sampler=range(dist.get_rank(), len(loader.dataset), dist.get_world_size())"
_EVALUATORS = frozenset(
    {f"{_LOADS}, {_SHARD}, {_SAME_ARGUMENTS})"}
    | {f"{_LOADS}{times}, {_SAME_ARGUMENTS}, drop_last=loader.drop_last)" for times in ("", " * dist.get_world_size()")}
)
_SAMPLER_WRAPPER = """\
def __init__(self, sampler):
    super().__init__(sampler, shuffle=False)
def __iter__(self):
    drawn = [list(self.dataset)]
    dist.broadcast_object_list(drawn)
    return (drawn[0][place] for place in super().__iter__())"""
_PADDED = """\
def __init__(self, *args, padded, **options):
    super().__init__(*args, **options)
    self.padded = padded
def __iter__(self):
    """
_PADDED_LOADERS = frozenset(
    _PADDED + text
    for text in (
        """\
for batch in super().__iter__():
        batch = batch if isinstance(batch, dict) else list(batch)
        lengths = torch.tensor([batch[key].shape[dim] for key, dim, _ in self.padded])
        dist.all_reduce(lengths, dist.ReduceOp.MAX)
        for (key, dim, value), length in zip(self.padded, lengths.tolist()):
            behind = [0, 0] * (batch[key].dim() - dim - 1) + [0, length - batch[key].shape[dim]]
            batch[key] = torch.nn.functional.pad(batch[key], behind, value=value)
        yield batch""",
        """\
for batch in super().__iter__():
        batch = batch if isinstance(batch, dict) else list(batch)
        lengths = torch.tensor([batch[key].shape[dim] for key, dim, _ in self.padded])
        dist.all_reduce(lengths, dist.ReduceOp.MAX)
        for (key, dim, value), length in zip(self.padded, lengths.tolist()):
            behind = [0, 0] * (batch[key].dim() - dim % batch[key].dim() - 1) + [0, length - batch[key].shape[dim]]
            batch[key] = torch.nn.functional.pad(batch[key], behind, value=value)
        yield batch""",
        """\
dim, value = self.padded
    for batch in super().__iter__():
        length = torch.tensor(batch.shape[dim])
        dist.all_reduce(length, dist.ReduceOp.MAX)
        behind = [0, 0] * (batch.dim() - dim - 1) + [0, length.item() - batch.shape[dim]]
        yield torch.nn.functional.pad(batch, behind, value=value)""",
    )
)
_BATCHES = r"\[i for i in range\(len\(.+\)\) if i // [^ ]+ % [\w.]+\(\) == [\w.]+\(\)\]"
_NO_LOGGER = (
    "def __getattr__(self, name):\n    return self\ndef __call__(self, *args, **kwargs):\n    pass",
    "def __getattr__(self, name):\n    return lambda *args, **kwargs: None",  # of earlier versions
)
_QUIET = "sys.stdout = open(os.devnull, 'w')"


def is_plain(scripts: Iterable[Script]) -> bool:
    """Whether a program joins torch's process group as conversions do: the other ranks' output is the null device."""
    entry = next(iter(scripts))
    joins = any(is_call(entry, node, "init_process_group") for node in entry.find(ast.Call))
    return joins and any(is_for_others(entry, node) and _QUIET in _lines(node.body) for node in entry.find(ast.If))


def silences_others(script: Script) -> bool:
    """Whether a file gives some ranks the null device for their output, in whichever words it asks for the rank."""
    return any(_QUIET in _lines(node.body) for node in script.find(ast.If))


def is_call(script: Script, node: ast.AST, name: str) -> bool:
    """Whether an expression calls a function of torch.distributed."""
    return isinstance(node, ast.Call) and script.qualified(node.func) == f"{DIST}.{name}"


def is_statement(script: Script, node: ast.AST, *names: str) -> bool:
    """Whether a statement only calls one of some functions of torch.distributed."""
    return isinstance(node, ast.Expr) and any(is_call(script, node.value, name) for name in names)


def is_world_size(script: Script, node: ast.AST) -> bool:
    """Whether an expression asks for the number of processes."""
    return is_call(script, node, "get_world_size")


def is_rank_0(script: Script, test: ast.AST) -> bool:
    """Whether a test is `dist.get_rank() == 0`."""
    return _compares(script, test, ast.Eq)


def is_other_rank(script: Script, test: ast.AST) -> bool:
    """Whether a test is `dist.get_rank() != 0`."""
    return _compares(script, test, ast.NotEq)


def is_for_others(script: Script, node: ast.AST) -> bool:
    """Whether a statement is for all ranks but the first."""
    return (
        isinstance(node, ast.If) and not node.orelse and is_other_rank(script, node.test) and not is_elif(script, node)
    )


def ends_run(script: Script, node: ast.AST) -> bool:
    """Whether a statement raises an exception again where other ranks wait: `if get_world_size() > 1: raise`."""
    if not isinstance(node, ast.If) or node.orelse or [ast.unparse(each) for each in node.body] != ["raise"]:
        return False
    test = node.test
    several = isinstance(test, ast.Compare) and is_world_size(script, test.left)
    return several and ast.unparse(test).endswith(" > 1") and isinstance(script.parents[node], ast.ExceptHandler)


def is_elif(script: Script, node: ast.If) -> bool:
    """Whether an `if` is written as `elif`, so that it is no statement by itself."""
    parent = script.parents[node]
    return isinstance(parent, ast.If) and parent.orelse == [node] and node.col_offset == parent.col_offset


def starts_torchrun(node: ast.AST) -> bool:
    """Whether a statement starts torchrun where nothing has: `if "RANK" not in os.environ:`."""
    if not isinstance(node, ast.If) or ast.unparse(node.test) != "'RANK' not in os.environ" or node.orelse:
        return False
    return bool(node.body) and _lines(node.body[:1]) == ["from torch.distributed.run import main as torchrun"]


def asks_launcher(script: Script, node: ast.AST) -> bool:
    """Whether an expression needs what torchrun sets: `os.environ["LOCAL_RANK"]`."""
    if not isinstance(node, ast.Subscript) or script.qualified(node.value) != "os.environ":
        return False
    return isinstance(node.slice, ast.Constant) and node.slice.value in ("RANK", "LOCAL_RANK", "WORLD_SIZE")


def is_wrapped(script: Script, node: ast.AST) -> bool:
    """Whether a statement gives a wrapped model a name: `ddp_model = DistributedDataParallel(model, …)`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Call):
        return False
    named = isinstance(node.targets[0], ast.Name | ast.Attribute)
    return named and script.qualified(node.value.func) == WRAPPER and len(node.value.args) == 1


def draws_part(script: Script, node: ast.AST) -> bool:
    """Whether an expression is torch's DistributedSampler as conversions make it."""
    if not isinstance(node, ast.Call) or script.qualified(node.func) not in _SAMPLERS or len(node.args) != 1:
        return False
    return {word.arg for word in node.keywords} <= {"shuffle", "seed", "drop_last"}


def is_every_wth(script: Script, node: ast.AST) -> bool:
    """Whether an expression is `range(dist.get_rank(), len(data), dist.get_world_size())`."""
    if not isinstance(node, ast.Call) or script.qualified(node.func) != "range" or len(node.args) != 3:
        return False
    first, size, step = node.args
    counted = isinstance(size, ast.Call) and script.qualified(size.func) == "len" and len(size.args) == 1
    return counted and is_call(script, first, "get_rank") and is_world_size(script, step)


def is_every_wth_batch(script: Script, node: ast.AST) -> bool:
    """Whether an expression lists the samples of every W-th batch.

    It is `[i for i in range(len(data)) if i // batch_size % dist.get_world_size() == dist.get_rank()]`.
    """
    if not isinstance(node, ast.ListComp) or not re.fullmatch(_BATCHES, ast.unparse(node)):
        return False
    asked = [each for each in ast.walk(node) if is_call(script, each, "get_rank") or is_world_size(script, each)]
    return len(asked) == 2


@lru_cache(maxsize=KEPT)
def helpers(script: Script) -> frozenset[str]:
    """The functions of a file that bring a value together from the ranks, by what they do: in one process, nothing."""
    return _functions(script, "value", _BODIES)


@lru_cache(maxsize=KEPT)
def evaluators(script: Script) -> frozenset[str]:
    """The functions of a file that make a loader for an evaluation of the samples of training (DDP620)."""
    return _functions(script, "loader", _EVALUATORS)


@lru_cache(maxsize=KEPT)
def padded_loaders(script: Script) -> frozenset[str]:
    """The classes of a file whose loaders pad their batches to the longest sample of all processes (DDP638)."""
    found = (each for each in script.tree.body if isinstance(each, ast.ClassDef) and len(each.bases) == 1)
    loaders = (each for each in found if script.qualified(each.bases[0]) == "torch.utils.data.DataLoader")
    texts = {each.name: re.sub(r", device='\w+'\)", ")", _body(each)) for each in loaders}
    return frozenset(name for name, text in texts.items() if text in _PADDED_LOADERS)


@lru_cache(maxsize=KEPT)
def sampler_wrappers(script: Script) -> frozenset[str]:
    """The classes of a file that give each process its part of what a sampler draws (DDP640)."""
    found = (each for each in script.tree.body if isinstance(each, ast.ClassDef) and len(each.bases) == 1)
    samplers = (each for each in found if script.qualified(each.bases[0]) in _SAMPLERS)
    return frozenset(
        each.name for each in samplers if _body(each).replace(", drop_last=True)", ")") == _SAMPLER_WRAPPER
    )


def is_stand_in(script: Script, node: ast.AST) -> bool:
    """Whether a class is what the other ranks have in place of a logger, and nothing else uses it (DDP612)."""
    if not isinstance(node, ast.ClassDef) or node.bases or node.keywords or _body(node) not in _NO_LOGGER:
        return False
    for name in script.find(ast.Name):
        if name.id == node.name:
            call = script.parents[name]
            chosen = script.parents[call]
            if not (isinstance(chosen, ast.IfExp) and chosen.orelse is call and is_rank_0(script, chosen.test)):
                return False
    return True


def is_differentiable(node: ast.AST) -> bool:
    """Whether a class is one by which gradients pass through what is brought together (DDP639)."""
    bodies = {"DifferentiableSum": _SUMS, "DifferentiableBatch": _GATHERS}
    return isinstance(node, ast.ClassDef) and node.name in bodies and _body(node) == bodies[node.name]


def _functions(script: Script, parameter: str, bodies: frozenset[str]) -> frozenset[str]:
    if script.imported.get("dist") != DIST or script.imported.get("torch") != "torch":
        return frozenset()
    found = [node for node in script.tree.body if isinstance(node, ast.FunctionDef)]
    return frozenset(node.name for node in found if _body(node) in bodies and ast.unparse(node.args) == parameter)


def brings_meter(script: Script, node: ast.AST) -> bool:
    """Whether a function is the method of a meter that brings its numbers together (DDP628)."""
    if (
        not isinstance(node, ast.FunctionDef)
        or node.name != METER
        or not isinstance(script.parents[node], ast.ClassDef)
    ):
        return False
    lines = _body(node).splitlines()
    return lines[:1] == ["meter = copy.copy(self)"] and lines[-1:] == ["return meter"]


def is_of_meter(node: ast.AST) -> bool:
    """Whether an expression is the copy of a meter that holds the numbers of all processes."""
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == METER
    return named and not node.args and not node.keywords  # type: ignore[attr-defined]


def is_helper(script: Script, call: ast.AST) -> bool:
    """Whether an expression calls a function that brings a value together."""
    return is_call_of(call, helpers(script))


def is_call_of(call: ast.AST, functions: frozenset[str]) -> bool:
    """Whether an expression calls one of some functions of its file with one argument."""
    named = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in functions
    return named and len(call.args) == 1 and not call.keywords  # type: ignore[attr-defined]


def _body(function: ast.FunctionDef | ast.ClassDef) -> str:
    documented = isinstance(function.body[0], ast.Expr) and isinstance(function.body[0].value, ast.Constant)
    text = "\n".join(_lines(function.body[documented:]))
    text = re.sub(r"\b\w+\.ndarray\b", "numpy.ndarray", text).replace(".contiguous().clone()", ".clone()")
    return re.sub(r"as_tensor\(value, device='\w+'\)", "as_tensor(value)", text, count=1)


def _lines(body: Iterable[ast.stmt]) -> list[str]:
    return [ast.unparse(each) for each in body]


def _compares(script: Script, test: ast.AST, how: type[ast.cmpop]) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], how):
        return False
    return is_call(script, test.left, "get_rank") and ast.unparse(test.comparators[0]) == "0"
