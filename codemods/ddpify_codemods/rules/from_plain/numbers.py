"""DDP705: numbers of one process are those of all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import brings_meter, helpers, is_differentiable, is_helper, is_of_meter, is_rank_0
from ...facts.script import Script
from ...rule import ChangeArgument, Delete, Edit, Finding, Replace, Rule
from ...targets import Target
from .rank_zero import is_bare

_MESSAGE = "the numbers of one process are those of all"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take out the functions that bring numbers together, and their calls."""
    own = helpers(script)
    for function in script.find(ast.FunctionDef):
        if function.name in own:
            yield Delete(function, "leave out what brings numbers together")
    for own_class in script.find(ast.ClassDef):
        if is_differentiable(own_class):
            yield Delete(own_class, "leave out what passes gradients through it")
    for statement in script.find(ast.Assign):
        if _brings_together(script, statement):
            loop = script.parents[statement]
            yield Delete(loop if _is_by_keys(loop) else statement, _MESSAGE)  # type: ignore[arg-type]
        elif (use := _named_for_rank_0(script, statement)) is not None:
            yield Delete(statement, "")
            yield Replace(use, ast.unparse(_taken(statement.value)), _MESSAGE)
    yield from _meters(script)
    called: set[ast.AST] = set()
    for call in script.find(ast.Call):
        if is_helper(script, call):
            called.add(call.func)
            if (padding := _pads_to(script, call)) is not None:
                yield ChangeArgument(padding, "", "", "", "total_length")
                continue
            taken = _taken(call)
            if (whole := _entry_by_entry(script, call)) is not None:
                listed = _of_entries(whole)
                yield Replace(whole, "{}", _MESSAGE, parts=(listed,), bare=is_bare(script, whole, listed))
                continue
            yield Replace(call, "{}", _MESSAGE, parts=(taken,), bare=is_bare(script, call, taken))
    for name in script.find(ast.Name):
        if name.id in own and name not in called:
            message = f"{name.id} is used in a way of its own here"
            yield Finding(RULE.id, "refused", name.lineno, message, "call it with what is brought together")


def _pads_to(script: Script, call: ast.AST) -> ast.Call | None:
    """The call that pads packed sequences to the longest of all ranks, where another one asks how long that is."""
    word = script.parents[call]
    padding = script.parents[word]
    if not isinstance(word, ast.keyword) or word.arg != "total_length" or not isinstance(padding, ast.Call):
        return None
    known = ast.unparse(_taken(word.value)) == f"len({ast.unparse(padding.args[0])}.batch_sizes)"
    return padding if known else None


def _meters(script: Script) -> Iterator[Edit]:
    """Take out the method that brings a meter together, its calls, and the names that these have."""
    named: dict[str, ast.expr] = {}
    gone: set[ast.AST] = set()
    for statement in script.find(ast.Assign):
        target = statement.targets[0]
        if is_of_meter(statement.value) and isinstance(target, ast.Name) and target.id.startswith("whole_"):
            named[target.id] = statement.value.func.value  # type: ignore[attr-defined]
            gone.add(statement.value)
            yield Delete(statement, "")
    for node in script.nodes:
        if brings_meter(script, node):
            assert isinstance(node, ast.FunctionDef)
            yield Delete(node, "leave out what brings a meter together")
        elif isinstance(node, ast.Name) and node.id in named and isinstance(node.ctx, ast.Load):
            yield Replace(node, ast.unparse(named[node.id]), _MESSAGE)
        elif isinstance(node, ast.Call) and is_of_meter(node) and node not in gone:
            yield Replace(node, "{}", _MESSAGE, parts=(node.func.value,))  # type: ignore[attr-defined]


def _brings_together(script: Script, node: ast.Assign) -> bool:
    """Whether a variable is only brought together: `total = sum_over_ranks(total)`, as a dictionary or list too."""
    name, value = ast.unparse(node.targets[0]), node.value
    if len(node.targets) != 1:
        return False
    if isinstance(value, ast.DictComp | ast.ListComp):
        each_of = value.value if isinstance(value, ast.DictComp) else value.elt
        calls = [each for each in ast.walk(each_of) if is_helper(script, each)]
        whole = _entry_by_entry(script, calls[0]) if calls else None
        return whole is value and ast.unparse(_of_entries(value)) == name
    if isinstance(value, ast.Call) and len(value.args) == 1 and _makes_list(script, value.func):
        value = value.args[0]
        if ast.unparse(node.value.func) == "list":  # type: ignore[attr-defined]
            return is_helper(script, value) and _is_stacked(script, value.args[0], name)  # type: ignore[attr-defined]
    return is_helper(script, value) and ast.unparse(_taken(value)) == name


def _entry_by_entry(script: Script, call: ast.AST) -> ast.DictComp | ast.ListComp | None:
    """The expression that brings a dict, or lists in a list, together, entry by entry, of which this is the call; None
    for others."""
    parent = script.parents[call]
    helper = ast.unparse(call.func)  # type: ignore[attr-defined]
    if isinstance(parent, ast.ListComp):
        over = ast.unparse(parent.generators[0].iter)
        return parent if ast.unparse(parent) == f"[{helper}(numbers) for numbers in {over}]" else None
    whole = script.parents[parent] if isinstance(parent, ast.IfExp) else parent
    if not isinstance(whole, ast.DictComp) or not isinstance(whole.generators[0].iter, ast.Call):
        return None
    over = ast.unparse(whole.generators[0].iter)
    if ast.unparse(call) != f"{helper}(value)" or (isinstance(parent, ast.IfExp) and not _is_of_own(parent, call)):
        return None
    known = f"{{key: {ast.unparse(whole.value)} for key, value in {over}}}"
    return whole if over.endswith(".items()") and ast.unparse(whole) == known else None


def _is_of_own(choice: ast.IfExp, call: ast.AST) -> bool:
    """Whether entries are chosen by keys and types alone: `mean_over_ranks(value) if key == "loss" else value`."""
    other = choice.orelse if choice.body is call else choice.body
    names = {node.id for node in ast.walk(choice.test) if isinstance(node, ast.Name)}
    return ast.unparse(other) == "value" and names <= {"key", "value", "isinstance", "int", "str", "type"}


def _of_entries(whole: ast.DictComp | ast.ListComp) -> ast.expr:
    """The dict, or the list of lists, that is brought together entry by entry."""
    over = whole.generators[0].iter
    return over.func.value if isinstance(whole, ast.DictComp) else _as_listed(over)  # type: ignore[attr-defined]


def _is_stacked(script: Script, node: ast.expr, name: str) -> bool:
    """Whether the tensors, or arrays, of a list are put into one: `torch.stack(outputs)`."""
    stacks = isinstance(node, ast.Call) and script.qualified(node.func) in ("torch.stack", "numpy.stack")
    return stacks and ast.unparse(node.args[0]) == name  # type: ignore[attr-defined]


def _is_by_keys(node: ast.AST) -> bool:
    """Whether a loop brings the entries of a dictionary together: `for key in ["loss", "hits"]:`."""
    if not isinstance(node, ast.For) or len(node.body) > 1 or ast.unparse(node.target) != "key":
        return False
    return isinstance(node.iter, ast.List) and all(isinstance(each, ast.Constant) for each in node.iter.elts)


def _makes_list(script: Script, function: ast.expr) -> bool:
    return ast.unparse(function) == "list" or script.qualified(function) == "numpy.array"


def _taken(call: ast.expr) -> ast.expr:
    """What such a function is given; the list, where it is given that of its arrays as numbers."""
    return _as_listed(call.args[0])  # type: ignore[attr-defined]


def _as_listed(given: ast.expr) -> ast.expr:
    if isinstance(given, ast.ListComp):
        over = given.generators[0].iter
        name = ast.unparse(over)
        floats = "float(number) for number in"
        alike = (f"[each.tolist() for each in {name}]", f"[{floats} {name}]", f"[[{floats} each] for each in {name}]")
        return over if ast.unparse(given) in alike else given
    return given


def _named_for_rank_0(script: Script, node: ast.Assign) -> ast.Name | None:
    """For `mean_loss = mean_over_ranks(loss.item())` above what rank 0 logs, the place where that number is read."""
    target, parent = node.targets[0], script.parents[node]
    if not isinstance(target, ast.Name) or not is_helper(script, node.value) or len(node.targets) != 1:
        return None
    block = next((each for _, each in ast.iter_fields(parent) if isinstance(each, list) and node in each), [])
    after = [each for each in block[block.index(node) + 1 :] if not _is_brought(script, each)][:1] if block else []
    uses = [each for each in script.find(ast.Name) if each.id == target.id and each is not target]
    if len(uses) != 1 or not after or not isinstance(after[0], ast.If) or not is_rank_0(script, after[0].test):
        return None
    inside = isinstance(uses[0].ctx, ast.Load) and uses[0] in set(ast.walk(after[0]))
    return uses[0] if inside and target.id.startswith(("mean_", "sum_", "whole_")) else None


def _is_brought(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and is_helper(script, node.value)


RULE = Rule(
    id="DDP705",
    title="Take numbers as they are",
    why="""\
The inverse of DDP605, DDP614 and DDP647. The functions are known by what they do: a sum or a mean over one process is
the number itself (E2), and what rank 0 has is what there is.""",
    before='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def mean_over_ranks(value):
    """The mean of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value).detach().contiguous().clone()
    dist.all_reduce(total)
    total = total / dist.get_world_size()
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    if i % 4 == 0:
        print(i, mean_over_ranks(loss.item()))
total = mean_over_ranks(total)
print(total / len(loader))
dist.destroy_process_group()
''',
    after="""\
import torch
from torch.utils.data import DataLoader, TensorDataset


torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    if i % 4 == 0:
        print(i, loss.item())
print(total / len(loader))
""",
    check=check,
    target="none",
)
