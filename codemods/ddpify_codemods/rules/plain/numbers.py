"""DDP605: what loops add up is brought together from the ranks where it is read."""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from ...facts.called_modules import last_name
from ...facts.flow.batches import sure_size
from ...facts.flow.frames import AfterLoop, FlowFacts, Reduction
from ...facts.flow.held_values import OwnEntry
from ...facts.flow.shown_parameters import may_be_text
from ...facts.flow.small_batches import is_one, smallest
from ...facts.flow.told import is_also_whole
from ...facts.header import functions_place
from ...facts.meters import meters
from ...facts.script import Script
from ...plain_words import Words
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .arrays import as_numbers, is_array
from .joined_loss import joins
from .logged import is_logged, prints
from .mixed_loops import asked_at, mixed_loops, told_before
from .rank_0_alone import is_bound_within, is_of_rank_0
from .ratios import in_ratio, only_ratios_are_left
from .training_loader import SAMPLER
from .weighed_loss import weighed
from .words import REMEDY, device, is_here, module_name, program_of

_HELPER = '''\


def {name}_over_ranks(value):
    """The {name} of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value{device}).detach().contiguous().clone()
    {all_reduce}
{mean}{array}    return total.to(value.device) if torch.is_tensor(value) else total.tolist()
'''


_GATHER = '''\


def whole_batch(value):
    """What holds each sample of a batch, for the samples of all processes, in the order of the batch."""
    part = torch.as_tensor(value{device}).detach().contiguous()
    parts = [torch.empty_like(part) for _ in range({world_size})]
    dist.all_gather(parts, part)
    batch = torch.stack(parts, 1).flatten(0, 1)
    if torch.is_tensor(value):
        return batch.to(value.device)
    return batch.tolist() if isinstance(value, list) else batch.cpu().numpy()
'''
_TEXTS = """\
    if isinstance(value, (list, tuple)) and isinstance(value[0], str):
        parts = [None] * {world_size}
        dist.all_gather_object(parts, value)
        return [text for texts in zip(*parts) for text in texts]
    if isinstance(value, (list, tuple)) and torch.is_tensor(value[0]) and value[0].dim():
        return [whole_batch(each) for each in value]
    if isinstance(value, (list, tuple)) and isinstance(value[0], (list, tuple)) and isinstance(value[0][0], str):
        return [whole_batch(each) for each in value]
"""
# The entries of a list stay what they are: arrays, and numbers of numpy.
_OF_ARRAYS = """\
    if isinstance(value, list):
        if value and torch.is_tensor(value[0]):
            return list(batch.to(value[0].device))
        return list(batch.cpu().numpy()) if value and hasattr(value[0], "dtype") else batch.tolist()
    return batch.cpu().numpy()
"""
# Of batches of one sample, those of other ranks may have other sizes: what is gathered would never come, or be garbage.
_SIZES = """\
    shapes = [None] * {world_size}
    dist.all_gather_object(shapes, part.shape)
    if len(set(shapes)) > 1:
        raise ValueError(f"samples of several sizes are no batch: {{shapes}}")
"""
_ONE_SIZE = "`{}` holds the samples of all ranks here, which have to be of one size: else the run ends with an error"
# A rank may have had no batch: what it adds up is the 0 that it began with, and of no other type.
_HELPER_OF_BATCHES = '''\


def sum_over_ranks(value):
    """The sum of a number, a list of numbers or a tensor over all processes, some of which may have had no batch."""
    total = torch.as_tensor(value{device}).detach().contiguous().clone()
    total = total if isinstance(value, (list, torch.Tensor{of_array})) else total.double()
    {all_reduce}
{array}    if hasattr(value, "__index__") and not torch.is_tensor(value) and total == total.round():
        return int(total)
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()
'''
_ARRAY = """\
    if isinstance(value, {numpy}.ndarray):
        return total.cpu().numpy()
"""
_TUPLE = """\
    if isinstance(value, tuple):
        return tuple(total.tolist())
"""
_SAMPLES = "arrays of samples"
FUNCTIONS = {"mean": "mean_over_ranks", "sum": "sum_over_ranks", "size": "sum_over_ranks", "rows": "whole_batch"}


def reduces(script: Script) -> bool:
    """Whether functions stand behind the imports of a file: numbers are brought together, or training is evaluated."""
    followed = program_of(script).followed
    found = followed.found
    if any(is_here(script, there) for there in followed.evaluated.values()) or _weighs(script) or joins(script):
        return True
    read = ((node, each) for node, reductions in found.reductions.items() for each in reductions)
    return any(is_here(script, each.script) for each in found.after) or any(
        is_here(script, each.script) and each.kind != "size" and not _has_rank_0(script, node, {each.kind})
        for node, each in read
    )


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Reduce variables after the loops that add them up, and numbers that are read within."""
    found = program_of(script).followed.found
    kinds = {"mean"} if _weighs(script) else set[str]()
    named = _Named({name.id for name in script.find(ast.Name)})
    mixed: set[ast.For] = set()
    deferred = {node for meter in meters(program_of(script).scripts, found) for node in meter.reductions}
    for each in sorted(found.after, key=lambda one: (one.at.lineno, one.name)):
        if is_here(script, each.script):
            kinds.add("mean" if each.kind == "mean" else "sum")
            keys = found.keys.get((each.script, each.at, each.name), ())
            own = found.own_keys.get((each.script, each.at, each.name), {})
            asked = _asked_after(script, each, target.words)
            mixed |= {asked[0]} if asked else set()
            unsized = (each.script, each.at, each.name) in found.unsized
            yield _after(each, keys, own, asked[1] if asked else "", unsized, target.words)
    for node, reductions in sorted(found.reductions.items(), key=lambda one: (one[0].lineno, one[0].col_offset)):
        (script_of, kind), *others = {(each.script, each.kind) for each in reductions}
        if not is_here(script, script_of) or _has_rank_0(script, node, {each.kind for each in reductions}):
            continue
        also_same = _is_read_same(script, node, found)
        asked = asked_at(script, node) if also_same and kind != "mean" and target.words.name == "torch" else None
        if asked and kind != "rows" and in_ratio(script, node, found.reductions):
            asked = None
        trains = asked[1] if asked else ""
        problem = _problem(script, node, {each.kind for each in reductions}, also_same and not trains, found.reductions)
        if not problem and is_also_whole(found, node):
            problem = f"`{ast.unparse(node)}` is a sum of this rank in one case, and one of all ranks in another"
        if may_be_text(script, node, found.called_with):
            problem = f"`{ast.unparse(node)}` is a number of this rank in one call, and a text in another"
        if problem or others:
            yield Finding(RULE.id, "refused", node.lineno, problem or "it is a sum here and a mean there", REMEDY)
            continue
        if node in deferred:  # DDP628
            kinds.add(kind)
            continue
        if kind == "rows" and target.words.name != "torch":
            if any(each in found.pictures for each in script.ancestors(node)):
                continue  # DDP627
            message = f"`{ast.unparse(node)}` is read here: it holds samples of this rank alone"
            yield Finding(RULE.id, "refused", node.lineno, message, REMEDY)
            continue
        if kind == "rows" and _drops_samples(node) and not all(map(sure_size, found.training)):
            message = "where a rank's last batch has one sample, squeeze() drops the dimension of the samples, too"
            yield Finding(RULE.id, "warning", node.lineno, message, "squeeze(1), or drop_last=True where that may be")
        if kind == "rows" and "rows" not in kinds and _may_have_sizes(script):
            remedy = "none needed where all samples have one size"
            yield Finding(RULE.id, "warning", node.lineno, _ONE_SIZE.format(ast.unparse(node)), remedy)
        if kind != "size":
            kinds.add(kind)
        mixed |= {asked[0]} if asked else set()
        statement = script.statement(node)
        is_alone = is_logged(script, statement) or is_of_rank_0(script, node)
        if kind != "size" and is_alone and is_bound_within(script, node):
            message = f"`{ast.unparse(node)}` is brought together from all ranks, and only rank 0 comes here"
            yield Finding(RULE.id, "refused", node.lineno, message, "compute it in a line before")
        elif kind != "size" and is_alone:
            yield from _named(script, statement, node, kind, named, trains, target.words)
        else:
            yield _replaced(script, node, kind, trains, target.words)
    for loop in sorted(mixed, key=lambda each: each.lineno):
        message = "bring numbers of training together, which are divided"
        yield Insert(loop, told_before(script, loop), message, modules=(*target.words.imports, *SAMPLER))
    yield from _full_batches(script, target)
    yield from _helpers(script, kinds, target)


def _has_rank_0(script: Script, node: ast.expr, kinds: set[str]) -> bool:
    """Whether rank 0 alone shows, writes or logs the first sample of a batch, which is that of its own part."""
    taken = script.parents[node]
    if kinds != {"rows"} or not isinstance(taken, ast.Subscript) or taken.value is not node:
        return False
    place = taken.slice.elts[0] if isinstance(taken.slice, ast.Tuple) and taken.slice.elts else taken.slice
    if isinstance(place, ast.Slice):
        bounds = [each and ast.unparse(each) for each in (place.lower, place.upper, place.step)]
        is_first = bounds[0] in (None, "0") and bounds[1:] == ["1", None]
    else:
        is_first = ast.unparse(place) == "0"
    statement = script.statement(node)
    return is_first and (is_of_rank_0(script, node) or _is_shown(script, statement) or _only_shown(script, statement))


def _is_shown(script: Script, statement: ast.stmt) -> bool:
    return is_logged(script, statement) or prints(script, statement)


def _only_shown(script: Script, statement: ast.stmt) -> bool:
    """Whether a statement gives a variable a value that is only printed or logged: `first = x[0]; print(first)`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    scope = script.scope(statement)
    if not isinstance(target, ast.Name) or not isinstance(scope, ast.FunctionDef):
        return False
    uses = [each for each in script.find(ast.Name) if each.id == target.id and each is not target]
    shown = (script.scope(each) is scope and _is_shown(script, script.statement(each)) for each in uses)
    return bool(uses) and all(shown)


def _is_read_same(script: Script, node: ast.AST, found: FlowFacts) -> bool:
    """Whether an expression, or a tuple that it is in, is read where it is the same on all ranks, too."""
    while node not in found.read_same and isinstance(script.parents[node], ast.Tuple | ast.List):
        node = script.parents[node]
    return node in found.read_same


def _may_have_sizes(script: Script) -> bool:
    """Whether each rank may have batches of one sample, as one process has, so that no two samples need one size."""
    program = program_of(script)
    found = program.followed.found
    few = smallest(found, program.scripts)
    return program.per_process and ((few is not None and few[0] == 1) or any(is_one(e, found) for e in found.training))


def _drops_samples(node: ast.expr) -> bool:
    """Whether an expression drops all dimensions of size 1, be it that of the samples: `y.squeeze()`."""
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call) and last_name(each.func) == "squeeze")
    return any(isinstance(each.func, ast.Attribute) and not each.args and not each.keywords for each in calls)


def _weighs(script: Script) -> bool:
    """Whether losses are divided by a mean over ranks (DDP634, DDP637)."""
    labelled = program_of(script).followed.found.labelled.values()
    return any(
        is_here(script, there) for there in (*(each.script for each in weighed(script)), *(s for s, _ in labelled))
    )


def _full_batches(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Compare the size of a rank's batch with the batch size of a rank."""
    found = program_of(script).followed.found
    laid_out = {call.args[0] for call in found.batch_layouts}  # DDP656
    for node, there in found.full_batches.items():
        if not is_here(script, there) or program_of(script).per_process or node in laid_out:
            continue
        if node in found.read_same:
            message = f"`{ast.unparse(node)}` is compared here with the size of divided batches and of whole ones"
            yield Finding(RULE.id, "refused", node.lineno, message, REMEDY)
            continue
        template = f"{{}} // {target.words.world_size}"
        parent = script.parents[node]
        if isinstance(parent, ast.BinOp) and parent.right is node:  # `2 * (batch_size // …)`
            template = f"({template})"
        yield Replace(node, template, "the batch size of each rank", modules=target.words.imports)


def _after(
    each: AfterLoop, keys: Sequence[object], own: Mapping[object, OwnEntry], trains: str, unsized: bool, words: Words
) -> Insert:
    function = "mean_over_ranks" if each.kind == "mean" else "sum_over_ranks"
    value = f"{function}({each.name})"
    if each.form == "list":
        value = f"{function}({_as_list(each.script, each.at, each.name, each.kind, unsized)})"
    if each.form == "lists":
        numbers = _as_list(each.script, each.at, each.name, each.kind, unsized)
        value = f"[{function}(numbers) for numbers in {numbers}]"
    if each.form == "arrays":
        value = f"list({function}({_numpy(each.script)}.stack({each.name})))"
    if each.form in ("dict", "mixed dict"):
        value = _of_dict(function, each.name, own if each.form == "mixed dict" else {})
    if each.form == "tensors":
        value = f"list({function}(torch.stack({each.name})))"
    message = f"bring {each.name} together from all ranks"
    code = f"{each.name} = {value}"
    if each.form == "defaultdict":
        listed = ", ".join(json.dumps(key) for key in keys)
        code = f"for key in [{listed}]:\n    {each.name}[key] = {function}({each.name}[key])"
    code = f"if {trains}:\n" + textwrap.indent(code, "    ") if trains else code
    return Insert(each.at, code, message, "after", modules=words.imports)


def _asked_after(script: Script, each: AfterLoop, words: Words) -> tuple[ast.For, str] | None:
    """A loop that leaves a sum, if it also runs over evaluations that are whole, and what tells whether it trained."""
    mixed = [loop for loop in mixed_loops(script) if loop in ast.walk(each.at)]
    found = program_of(script).followed.found
    if each.kind == "mean" or not mixed or words.name != "torch" or only_ratios_are_left(script, mixed[0], found):
        return None
    return asked_at(script, mixed[0])


@dataclass
class _Named:
    """The names that a file has, and those that numbers get which are brought together before a statement: by what
    they are, with the statement."""

    taken: set[str]
    given: dict[str, tuple[str, ast.stmt]] = field(default_factory=dict)


def _named(
    script: Script, statement: ast.stmt, node: ast.expr, kind: str, named: _Named, trains: str, words: Words
) -> Iterator[Edit]:
    """Bring a number together before a statement to which only rank 0 comes, or before others in front of it."""
    source = _source(script, node, words)
    unsized = node in program_of(script).followed.found.unsized
    value = _brought_together(script, node, kind, _as_list(script, node, str(source), kind, unsized))
    value += f" if {trains} else {source}" if trains else ""
    known = named.given.get(value)
    if known is not None and _only_logs_between(script, known[1], statement):
        yield Replace(node, known[0], "")
        return
    prefix = {"mean": "mean", "rows": "whole"}.get(kind, "sum")
    base = next((part.id for part in ast.walk(node) if isinstance(part, ast.Name)), "number")
    name = f"{prefix}_{base}"
    while name in named.taken or name in FUNCTIONS.values():
        name += "_"
    named.taken.add(name)
    named.given[value] = name, statement
    yield Insert(statement, f"{name} = {value}", "bring it together from all ranks", modules=words.imports)
    yield Replace(node, name, "")


def _only_logs_between(script: Script, first: ast.stmt, last: ast.stmt) -> bool:
    """Whether a statement, those behind it and another one only log or write, so that nothing changes in between."""
    block = _block(script, first)
    if last not in block:
        return False
    between = block[block.index(first) : block.index(last)]
    return first is last or (bool(between) and all(is_logged(script, each) for each in between))


def _block(script: Script, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that one stands among."""
    lists = (getattr(script.parents[statement], name, ()) for name in ("body", "orelse", "finalbody"))
    return next(([*each] for each in lists if isinstance(each, list) and statement in each), [])


def _source(script: Script, node: ast.expr, words: Words) -> str | None:
    """The code of an expression, with the batch size of a rank in it."""
    program = program_of(script)
    sizes = (
        [] if program.per_process else [each for each in ast.walk(node) if each in program.followed.found.full_batches]
    )
    if not sizes:
        return ast.get_source_segment(script.text, node)
    parts = {id(each): ast.parse(f"{ast.unparse(each)} // {words.world_size}", mode="eval").body for each in sizes}
    return ast.unparse(deepcopy(node, parts))


def _replaced(script: Script, node: ast.expr, kind: str, trains: str, words: Words) -> Replace:
    if kind == "size":
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and isinstance(node.right, ast.Call | ast.Name)
        ):
            node = node.right
        template = f"{{}} * {words.world_size}"
        template = f"({template})" if _binds(script.parents[node], node) else template
        template = f"({template} if {trains} else {{}})" if trains else template
        return Replace(node, template, "count the samples of all ranks", modules=words.imports)
    unsized = node in program_of(script).followed.found.unsized
    numbers = _as_list(script, node, ast.unparse(node), kind, unsized).replace(ast.unparse(node), "{}")
    code = _brought_together(script, node, kind, numbers)
    if trains:
        alone = isinstance(script.parents[node], ast.Call | ast.keyword | ast.Assign | ast.Return)
        code = f"{code} if {trains} else {{}}" if alone else f"({code} if {trains} else {{}})"
    return Replace(node, code, "bring it together from all ranks", modules=words.imports)


def _brought_together(script: Script, node: ast.expr, kind: str, numbers: str | None) -> str:
    """The code that brings numbers together where they are read: one by one out of a dict."""
    found = program_of(script).followed.found
    function, form = FUNCTIONS[kind], found.forms.get(node)
    if form in ("dict", "mixed dict"):
        code = _of_dict(function, str(numbers), found.own_keys[node] if form == "mixed dict" else {})
        return f"({code})" if isinstance(script.parents[node], ast.FormattedValue) else code
    if form == "lists":
        code = f"[{function}(numbers) for numbers in {numbers}]"
        return f"({code})" if isinstance(script.parents[node], ast.FormattedValue) else code
    stack = {"tensors": "torch.stack", "arrays": f"{_numpy(script)}.stack"}.get(form or "")
    return f"list({function}({stack}({numbers})))" if stack else f"{function}({numbers})"


def _as_list(script: Script, at: ast.AST, code: str, kind: str, unsized: bool) -> str:
    """The code of a list as one of Python's numbers, where it is seen to hold arrays of no dimension."""
    numbers = as_numbers(script, at, code)
    if numbers != code or not unsized:
        return numbers
    return f"[float(number) for number in {code}]" if kind == "mean" else f"[each.tolist() for each in {code}]"


def _of_dict(function: str, numbers: str, own: Mapping[object, OwnEntry]) -> str:
    """The code that brings the entries of a dict together; of a mixed one, `{"epoch": 3, "loss": loss.item()}`, those
    that are a rank's own. own: its keys, each with when it is; a text, None, or a count beside means is all ranks'."""
    brought = f"{function}(value)"
    if own:
        rest = own.get(None, "never") != "never"  # those that are not known: then the others are named
        keys = [key for key, when in own.items() if key is not None and (when != "never") is not rest]
        named = [json.dumps(key) if isinstance(key, str) else repr(key) for key in keys]
        tests = [f"key in ({', '.join(named)})" if len(named) > 1 else f"key == {named[0]}"] if named else []
        if "at times" in own.values():
            shared = "(str, type(None))" if function == FUNCTIONS["sum"] else "(int, str, type(None))"
            tests.append(f"{'' if rest else 'not '}isinstance(value, {shared})")
        test = (" or " if rest else " and ").join(tests)
        if test:
            brought = f"value if {test} else {brought}" if rest else f"{brought} if {test} else value"
    return f"{{key: {brought} for key, value in {numbers}.items()}}"


def _numpy(script: Script) -> str:
    """What numpy is called in a file."""
    return module_name(script, "numpy", script.tree.body[-1], after=True)


def _has_arrays(script: Script, name: str) -> bool:
    """Whether what a function brings together in a file, "sum" or "mean", may be an array of numpy."""
    found = program_of(script).followed.found
    after = [each for each in found.after if is_here(script, each.script) and (each.kind == "mean") is (name == "mean")]
    made = any(is_array(each.script, each.at, each.name) for each in after)
    added = any((each.script, each.at, each.name) in found.arrays for each in after)
    read = (each for node in found.arrays & {*found.reductions} for each in found.reductions[node])  # type: ignore[index]
    return (
        made
        or added
        or any(is_here(script, each.script) and (each.kind == "mean") is (name == "mean") for each in read)
    )


def _has_tuples(script: Script, name: str) -> bool:
    """Whether what a function brings together in a file, "sum" or "mean", may be a tuple, which is shown as one."""
    found = program_of(script).followed.found
    kinds = [each.kind for each in found.after if is_here(script, each.script) and each.form == "tuple"]
    read = (node for node, form in found.forms.items() if form == "tuple")
    kinds += [each.kind for node in read for each in found.reductions.get(node, ()) if is_here(script, each.script)]
    return any((kind == "mean") is (name == "mean") for kind in kinds)


def _binds(parent: ast.AST, node: ast.expr) -> bool:
    """Whether an operation takes an operand before a product with it is computed."""
    if not isinstance(parent, ast.BinOp) or isinstance(parent.op, ast.Pow):
        return isinstance(parent, ast.BinOp | ast.UnaryOp)
    return parent.right is node and isinstance(parent.op, ast.Div | ast.FloorDiv | ast.Mod | ast.MatMult)


def _is_held_to_zero(script: Script, node: ast.expr) -> bool:
    """Whether a number is compared with 0 alone: that of all ranks says there what that of one says."""
    compare = script.parents[node]
    sides = [compare.left, *compare.comparators] if isinstance(compare, ast.Compare) else []
    return len(sides) == 2 and any(isinstance(each, ast.Constant) and each.value == 0 for each in sides)


def _problem(
    script: Script, node: ast.expr, kinds: set[str], also_same: bool, all_: dict[ast.expr, set[Reduction]]
) -> str:
    """Why a number cannot be reduced where it is read; "" where it can."""
    if len(kinds) > 1:
        return f"`{ast.unparse(node)}` is a sum in one case and a mean in another"
    as_it_was = in_ratio(script, node, all_) or (kinds == {"sum"} and _is_held_to_zero(script, node))
    if also_same and kinds != {"mean"} and ("rows" in kinds or not as_it_was):
        return f"`{ast.unparse(node)}` is read here of divided batches and of whole ones"
    segment = ast.get_source_segment(script.text, node)
    try:
        misplaced = segment is None or ast.dump(ast.parse(f"({segment})", mode="eval").body) != ast.dump(node)
    except SyntaxError:
        misplaced = True
    return "what an f-string of several lines shows cannot be rewritten there" if misplaced else ""


def _helpers(script: Script, kinds: set[str], target: Target) -> Iterator[Insert]:
    for name in sorted(kinds, reverse=True):
        words = target.words
        if name == "rows":
            found, gather = program_of(script).followed.found, _GATHER
            if any(is_here(script, found.scripts[node]) for node in found.may_be_texts & found.reductions.keys()):
                head, end, rest = gather.partition('order of the batch."""\n')
                gather = head + end + _TEXTS + rest
            if any(is_here(script, found.scripts[node]) for node, form in found.forms.items() if form == _SAMPLES):
                gather = gather[: gather.index("    return batch.tolist()")] + _OF_ARRAYS
            if _may_have_sizes(script):
                head, end, rest = gather.partition(".contiguous()\n")
                gather = head + end + _SIZES + rest
            code = gather.format(device=device(target), world_size=words.world_size).rstrip("\n")
            yield _behind_imports(script, code, "a function that takes a batch of all ranks", words)
            continue
        mean = f"    total = total / {words.world_size}\n" if name == "mean" else ""
        all_reduce = words.all_reduce.format("total")
        by_batches = name == "sum" and program_of(script).followed.found.by_batches
        helper = _HELPER_OF_BATCHES if by_batches else _HELPER
        numpy = _numpy(script) if _has_arrays(script, name) else ""
        has_tuples = _has_tuples(script, name)
        code = helper.format(
            name=name,
            device=device(target),
            all_reduce=all_reduce,
            mean=mean,
            array=(_ARRAY.format(numpy=numpy) if numpy else "") + (_TUPLE if has_tuples else ""),
            of_array=(f", {numpy}.ndarray" if numpy else "") + (", tuple" if has_tuples else ""),
        ).rstrip("\n")
        if numpy:
            code = code.replace("a number, a list of numbers or a tensor", "numbers, a tensor or an array")
        modules = ("import numpy",) if numpy == "numpy" else ()
        yield _behind_imports(script, code, f"a function that takes the {name} over all ranks", words, modules)


def _behind_imports(script: Script, code: str, message: str, words: Words, modules: Sequence[str] = ()) -> Insert:
    at, where = functions_place(script)
    return Insert(at, code, message, where, modules=(*words.imports, "import torch", *modules))


RULE = Rule(
    id="DDP605",
    title="Bring numbers together from all ranks",
    why="""\
Losses, hits and counts that a loop adds up are those of this rank's samples (E2). They are summed over the ranks, or
averaged, once: after the loop, or where they are read in it. Decisions (the best model, early stopping, a plateau) are
taken from the numbers of all, and so alike on every rank (E4, E5).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

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
    after='''\
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
    check=check,
    target="cpu",
)
