"""DDP603: a training loader draws this rank's samples with torch's DistributedSampler, another order in each epoch."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ...facts.drawing_samplers import drawing_sampler
from ...facts.earlier_samples import by_earlier_samples
from ...facts.flow.frames import Pass
from ...facts.flow.given_loaders import may_be_other
from ...facts.flow.options import in_other_order, options, shared_order, shown_of
from ...facts.flow.own_sizes import batch_sizes
from ...facts.flow.program import Program, shuffle_distinguishes, told_by_key
from ...facts.flow.small_batches import is_one
from ...facts.flow.values import NOT_STACKED, UNEVEN, Instance, Loader
from ...facts.header import functions_place
from ...facts.keyword_dictionaries import drops_last, keyword_dictionary, may_say, said
from ...facts.known_sampler import known_sampler
from ...facts.loaders import Seen, can_be_repeated, is_false, new_name, order_of, says_no_sampler
from ...facts.script import Script
from ...facts.unset_sampler import UnsetSampler, unset_sampler
from ...facts.whole_sets import counts_samples, is_whole_set
from ...plain_words import Words
from ...rule import ChangeArgument, Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .engine_loader import divided_by_engine
from .sampler_wrapper import wrapped_sampler
from .words import REMEDY, free_name, is_here, program_of

SAMPLER = ("from torch.utils.data.distributed import DistributedSampler",)
_OTHER_ORDER = "another order in each epoch"
_NEW_LOADERS = "count the loaders that are made: each has another order"
_ONE = "a batch of one sample cannot be divided over ranks"
_LARGER = "choose a larger `batch_size`, convert it with --batch-size per-process, or use --style exact"
_ORDER = "draw this rank's samples"
_WHOLE = "all of a data set as one batch, whose size is said elsewhere"
_EARLIER = "samples depend here on those that were loaded before them, which are others on each rank (D20)"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Give each training loader a sampler and its part of the batch; tell the sampler the epoch."""
    program = program_of(script)
    followed = program.followed
    calls: dict[ast.Call, dict[Loader, str]] = {}
    for loader, status in followed.status.items():
        if is_here(script, loader.script) and loader.source is None:
            calls.setdefault(loader.call, {})[loader] = status
    counted = False
    for call, statuses in sorted(calls.items(), key=lambda each: each[0].lineno):
        if "training" not in statuses.values():
            continue
        shared = keyword_dictionary(script, call)
        if shared is not None and shared.needs_gpu and not target.is_accelerator:
            yield Finding(RULE.id, "refused", call.lineno, _ONE, _LARGER)
            continue
        changes = [*_training(script, call, statuses, target.words)]
        counted |= any(f"next({_orders(script)})" in _text(each) for each in changes)
        yield from changes
    for node in by_earlier_samples(script, program.scripts) if followed.found.training else ():
        yield Finding(RULE.id, "refused", node.lineno, _EARLIER, REMEDY)
    if counted:
        at, where = functions_place(script)
        code = f"\n{_orders(script)} = itertools.count()"
        yield Insert(at, code, _NEW_LOADERS, where, modules=("import itertools",))
    done: set[tuple[ast.stmt, str]] = set()
    for each in sorted(followed.found.passes, key=lambda one: (one.loader.call.lineno, one.loader_there)):
        for item in _epoch(script, each, target.words):
            if isinstance(item, Finding) or (item.at, item.code) not in done:
                yield item
            done |= set() if isinstance(item, Finding) else {(item.at, item.code)}


def _training(script: Script, call: ast.Call, statuses: dict[Loader, str], words: Words) -> Iterator[Edit | Finding]:
    whole_set = is_whole_batch(program_of(script), script, call, words)
    if whole_set is None:
        yield Finding(RULE.id, "refused", call.lineno, _WHOLE, f"write `batch_size=len(...)` in the call, or {REMEDY}")
        return
    name = options(script, call)
    if name and set(statuses.values()) == {"training"}:
        yield _changed(script, call, name, words)
        return
    unset = unset_sampler(script, call)
    if unset is not None and set(statuses.values()) == {"training"} and not words.loader:
        yield from _set(script, call, unset, words, whole_set)
        return
    shown, problem = _understood(script, call)
    if shown is None:
        yield Finding(RULE.id, "refused", call.lineno, problem, _LARGER if problem == _ONE else REMEDY)
        return
    size = call.args[1] if len(call.args) > 1 else said(script, call)["batch_size"]
    hidden = size not in call.args and all(word.value is not size for word in call.keywords)
    ordered = shared_order(script, call)
    epoch, sampler = _seed(script, call), known_sampler(script, call)
    by_torch = epoch or hidden or ordered is not None or any(each.cls is not None for each in statuses)
    by_torch = by_torch or says_no_sampler(call)
    if words.loader and not by_torch and set(statuses.values()) == {"training"}:
        yield from divided_by_engine(call, shown, sampler, size, words, program_of(script).per_process)
        return
    if drawing_sampler(script, call) is not None:
        yield from wrapped_sampler(script, call, set(statuses.values()) == {"training"}, words)
        if not program_of(script).per_process:
            yield from _part_of_shared(script, call, size, words) if hidden else [_part(size, words, whole_set)]
        return
    divides = not program_of(script).per_process
    if ordered is not None:
        code = in_other_order(ordered, words.world_size if hidden and divides else "")
        yield Replace(ordered.name, code, _ORDER, modules=words.imports)
    whole = divides and ("whole" in statuses.values() or _gives_batches(script, statuses))
    trains = _trains(script, shown, statuses) if whole else ""
    if whole and (hidden or not trains):
        message = "this call makes a loader for training, and one for an evaluation whose batches stay as large"
        yield Finding(RULE.id, "refused", call.lineno, message, "make them in calls of their own")
        return
    if divides and not (hidden and ordered is not None):
        yield from _part_of_shared(script, call, size, words) if hidden else [_part(size, words, whole_set, trains)]
    is_subset = sampler is not None and sampler.is_subset
    named = sampler.is_after if is_subset and sampler else can_be_repeated(script, shown.dataset)
    name = "" if named else new_name(script, call)
    others = set(statuses.values()) - {"training"}
    in_order = is_false(shown.shuffle) and not (sampler is not None and sampler.shuffles)
    whether = "False" if in_order else "True" if sampler is not None else "{}"
    if ordered is not None and not in_order:
        constant = shown.shuffle if isinstance(shown.shuffle, ast.Constant) else None
        whether = f'{ordered.name.id}["shuffle"]' if constant is None else str(constant.value)
    alone = is_false(shown.shuffle) or shown.shuffle is None or ordered is not None
    parts = [shown.dataset] if alone or shown.shuffle is None else [shown.dataset, shown.shuffle]
    beside = "" if epoch or in_order else _beside(script, call)
    seed = f", seed={epoch or beside}" if (epoch or beside) and not in_order else ""
    without_rest = "" if whole_set else _without_rest(script, call)
    template = f"DistributedSampler({{}}{words.replicas}, shuffle={whether}{seed}{without_rest})"
    if others:
        if "batches" in others or not shuffle_distinguishes(program_of(script).followed.found, call, statuses):
            message = "this call makes a loader for training and one for evaluation, and `shuffle` does not tell which"
            yield Finding(RULE.id, "refused", call.lineno, message, "make them in calls of their own")
            return
        assert shown.shuffle is not None
        other = words.shard if others == {"sharded"} else "None"
        rest = seed + without_rest
        template = f"DistributedSampler({{}}{words.replicas}{rest}) if {{}} else {other}"
        if isinstance(shown.shuffle, ast.Constant):
            order = "{}" if ordered is None else str(shown.shuffle.value)
            own = f"DistributedSampler({{}}{words.replicas}, shuffle={order}{rest})"
            template = f"{own} if {told_by_key(statuses)} else {other}"
        said_here = [shown.shuffle] if ordered is None else []
        parts = [shown.dataset, *said_here, *([shown.dataset] if others == {"sharded"} else [])]
    modules = (*SAMPLER, *words.imports) if others else SAMPLER
    yield from with_sampler(call, template, _ORDER, tuple(parts), name, modules)


def with_sampler(
    call: ast.Call, template: str, message: str, parts: tuple[ast.expr, ...], name: str, modules: tuple[str, ...]
) -> Iterator[Edit]:
    """Give a loader a sampler, in the place of its order; behind its data set, where that gets a name there."""
    given, instead = [word.arg for word in call.keywords], order_of(call)
    is_early = name and instead in given and "dataset" in given[given.index(instead) :]
    yield ChangeArgument(call, "sampler", template, message, "" if is_early else instead, (), parts, name, modules)
    if is_early:
        yield ChangeArgument(call, "", "", message, instead)
    if says_no_sampler(call) and "shuffle" in given:
        yield ChangeArgument(call, "", "", message, "shuffle")


def _gives_batches(script: Script, statuses: dict[Loader, str]) -> bool:
    """Whether batches of a divided evaluation are taken as one process takes them, too (DDP620)."""
    taken = {each.source for each in program_of(script).followed.status if each.source is not None}
    return any(loader in taken for loader, status in statuses.items() if status in UNEVEN)


def _set(script: Script, call: ast.Call, unset: UnsetSampler, words: Words, whole_set: bool) -> Iterator[Edit]:
    """Let the sampler be one that the script has left open."""
    epoch = _seed(script, call)
    seed = f", seed={epoch}" if epoch and unset.shuffles else ""
    rest = "" if whole_set else _without_rest(script, call)
    sampler = f"DistributedSampler({unset.dataset.id}{words.replicas}, shuffle={unset.shuffles}{seed}{rest})"
    yield Replace(unset.none, sampler, _ORDER, modules=SAMPLER)
    size = call.args[1] if len(call.args) > 1 else next((w.value for w in call.keywords if w.arg == "batch_size"), None)
    if size is not None and not program_of(script).per_process:
        yield _part(size, words, whole_set)


def _without_rest(script: Script, call: ast.Call) -> str:
    """What a sampler is told where a loader drops its last batch: samples that came twice could make one more."""
    dropped = next((word.value for word in call.keywords if word.arg == "drop_last"), None)
    code = "" if dropped is None else ast.unparse(dropped)
    hidden = [word.value.id for word in call.keywords if word.arg is None and isinstance(word.value, ast.Name)]
    if dropped is None and hidden and may_say(script, call, "drop_last"):
        dropped = said(script, call).get("drop_last", ast.Name(hidden[0]))
        code = (
            f'{hidden[0]}["drop_last"]' if keyword_dictionary(script, call) else f'{hidden[0]}.get("drop_last", False)'
        )
    elif not isinstance(dropped, (ast.Constant, ast.Name, ast.Attribute)):
        return ""
    is_false = isinstance(dropped, ast.Constant) and not dropped.value
    return "" if is_false else f", drop_last={code}"


def is_whole_batch(program: Program, script: Script, call: ast.Call, words: Words) -> bool | None:
    """Whether a loader's batch is all of its data set, of which a rank takes its share, rounded up; None where that may
    be so, and its call does not say it."""
    if program.per_process or program.followed.found.full_batches:
        return False
    size = next(iter(batch_sizes(Loader(call, script))), None)
    dataset = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "dataset")]
    if size is None or not dataset:
        return False
    if drawing_sampler(script, call) is not None and drops_last(script, call) is not False:
        return False  # it may draw fewer, of which a rank's share is no full batch
    training = [each for each, kind in program.followed.status.items() if each.call is call and kind == "training"]
    given = [each.given for each in training if each.given is not None]
    if is_whole_set(script, size, dataset[0]):
        return None if words.loader or size not in ast.walk(call) else True
    return None if any(size is not each and counts_samples(there, each) for each, there in given) else False


def _part(size: ast.expr, words: Words, whole_set: bool = False, trains: str = "") -> Replace:
    """Divide a batch size; whole_set: one of all samples, of which none may be left over. trains: where the loader is
    one of training, if the call makes others, too."""
    template = f"-(-{{}} // {words.world_size})" if whole_set else f"{{}} // {words.world_size}"
    template += f" if {trains} else {{}}" if trains else ""
    return Replace(size, template, "give each rank its part of the batch", modules=words.imports)


def _trains(script: Script, shown: Seen, statuses: dict[Loader, str]) -> str:
    """What is true where a call makes a loader of training, and not one of an evaluation; "" where it is not seen."""
    if isinstance(shown.shuffle, ast.Constant):
        return told_by_key(statuses)
    runs = shown.shuffle is None or any(isinstance(each, ast.Call | ast.Dict) for each in ast.walk(shown.shuffle))
    return "" if runs or shown.shuffle is None else ast.get_source_segment(script.text, shown.shuffle) or ""


def _part_of_shared(script: Script, call: ast.Call, size: ast.expr, words: Words) -> Iterator[Edit]:
    """Divide the batch size in the dictionary that a loader shares: there, if all that share it are of training."""
    shared = keyword_dictionary(script, call)
    assert shared is not None
    status = program_of(script).followed.status
    kinds = [{kind for each, kind in status.items() if each.call is one} for one in shared.calls]
    together = {script.parents[script.statement(each)] for each in (shared.made, *shared.calls)}
    if len(together) == 1 and not shared.either and all(each == {"training"} for each in kinds):
        if call is shared.calls[0]:
            yield _part(size, words)
        return
    name = shared.name.id
    template = f'dict({name}, batch_size={name}["batch_size"] // {words.world_size})'
    yield Replace(shared.name, template, "give each rank its part of the batch", modules=words.imports)


def _changed(script: Script, call: ast.Call, name: str, words: Words) -> Edit:
    """Change the dictionary that the options come from."""
    shuffle, rest = f'{name}.pop("shuffle", False)', _without_rest(script, call)
    seed = f", seed={epoch}" if (epoch := _seed(script, call)) else ""
    order = f"DistributedSampler({ast.unparse(call.args[0])}{words.replicas}, shuffle={shuffle}{seed}{rest})"
    code = f'{name}["sampler"] = {order}'
    if not program_of(script).per_process:
        code += f'\n{name}["batch_size"] //= {words.world_size}'
    return Insert(script.statement(call), code, _ORDER, modules=(*SAMPLER, *words.imports))


def _understood(script: Script, call: ast.Call) -> tuple[Seen | None, str]:
    """What a training loader's call says; None, and why not, where it cannot be divided."""
    words = said(script, call)
    dataset = program_of(script).followed.found.datasets.get(call)
    for thing in dataset.only(Instance) if dataset is not None else ():
        assert isinstance(thing, Instance)
        if any("IterableDataset" in ast.unparse(base) for base in thing.cls.node.bases):
            return None, "an IterableDataset is one stream, which no sampler divides over ranks (D8)"
    own = "sampler" in words and known_sampler(script, call) is None and drawing_sampler(script, call) is None
    if "batch_sampler" in words or (own and not says_no_sampler(call)):
        return None, "this loader has a sampler of its own, which DistributedSampler cannot stand in for"
    if call in program_of(script).followed.found.not_stacked:
        return None, f"{NOT_STACKED}: ranks may weigh theirs differently (L3)"
    shown = shown_of(script, call)
    if shown is None:
        return None, "what this loader loads, or in which order, is not said in its call"
    size = call.args[1] if len(call.args) > 1 else words.get("batch_size")
    if size is None:
        hidden = any(word.arg is None for word in call.keywords)
        return None, "the batch size is not said in its call" if hidden else _ONE
    found = program_of(script).followed.found
    is_alone = any(each.call is call and is_one(each, found) for each in found.training)
    if (isinstance(size, ast.Constant) and size.value is None) or (is_alone and not program_of(script).per_process):
        return None, _ONE
    return shown, ""


def _beside(script: Script, call: ast.Call) -> str:
    """The place of a loader among those of training that a loop takes batches of at once, `zip(labelled, unlabelled)`;
    "" for the first one. Samplers with the same seed would put the same samples together in each epoch."""
    followed = program_of(script).followed
    zipped = [loaders for loop, loaders in followed.found.loops.items() if _takes_several(loop)]
    together = [*zipped, *followed.found.by_next.loops.values()]
    calls = {call}
    for loaders in together:
        training = {each.call for each in loaders if followed.status.get(each) == "training"}
        calls |= training if call in training else set()
    place = sorted(calls, key=lambda each: (each.lineno, each.col_offset)).index(call)
    return str(place) if place else ""


def _takes_several(loop: ast.AST) -> bool:
    """Whether a loop takes batches of several loaders at once."""
    names = [each.id for each in ast.walk(loop.iter) if isinstance(each, ast.Name)] if isinstance(loop, ast.For) else []
    return "zip" in names


def _seed(script: Script, call: ast.Call) -> str:
    """Where the order of a loader begins that is made in each epoch, or fold: the number of that, or of loaders that
    were made; "" for one that is made once."""
    loop = _loop_around(script, call)
    if _is_counted(script, call):
        return f"next({_orders(script)})"
    return "" if loop is None else ast.unparse(loop.target)


def _is_counted(script: Script, call: ast.Call) -> bool:
    """Whether a loader is made anew for each epoch, where no loop over these has a number that it could be told."""
    passes = program_of(script).followed.found.passes
    return any(
        each.epochs is not _loop_around(script, call) if each.makes_loader else _is_made_beside(each, passes)
        for each in passes
        if each.loader.call is call
    )


def _text(edit: Edit | Finding) -> str:
    """What an edit writes."""
    return f"{getattr(edit, 'template', '')}{getattr(edit, 'code', '')}"


def _orders(script: Script) -> str:
    return free_name(script, "orders")


def _loop_around(script: Script, call: ast.Call) -> ast.For | None:
    """The innermost loop with a number that a loader is made in."""
    for parent in script.ancestors(call):
        if isinstance(parent, ast.FunctionDef):
            break
        if isinstance(parent, ast.For) and isinstance(parent.target, ast.Name) and _counts(script, parent):
            return parent
    return None


def _counts(script: Script, loop: ast.For) -> bool:
    """Whether a loop's variable is a number that goes up."""
    over = loop.iter
    if not isinstance(over, ast.Call):
        return False
    name = script.qualified(over.func).rpartition(".")[2]
    if name in ("tqdm", "track") and over.args:
        return isinstance(over.args[0], ast.Call) and ast.unparse(over.args[0].func) == "range"
    return name in ("range", "trange")


def _number(script: Script, loop: ast.For | ast.While | None) -> str:
    """The number of a turn of a loop over epochs: its variable, or what `while epoch < epochs:` counts up; "" for
    none."""
    if isinstance(loop, ast.For):
        return loop.target.id if isinstance(loop.target, ast.Name) and _counts(script, loop) else ""
    if not isinstance(loop, ast.While) or not isinstance(loop.test, ast.Compare):
        return ""
    number = ast.unparse(loop.test.left)
    stored = [each for each in ast.walk(loop) if isinstance(each, ast.Name | ast.Attribute)]
    stored = [each for each in stored if not isinstance(each.ctx, ast.Load) and ast.unparse(each) == number]
    up = [each for each in loop.body if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add)]
    counted = [each.target for each in up if isinstance(each.value, ast.Constant) and type(each.value.value) is int]
    return number if len(stored) == 1 and stored[0] in counted else ""


def _is_bound_within(loop: ast.AST | None, code: str) -> bool:
    """Whether a loop over epochs binds a loader's name, or the object that has it: at its begin there may be none, or
    another."""
    owner = code.partition(".")[0]
    stored = (each for each in ast.walk(loop or ast.Module([], [])) if isinstance(each, ast.Name))
    return any(each.id == owner and not isinstance(each.ctx, ast.Load) for each in stored)


def _epoch(script: Script, each: Pass, words: Words) -> Iterator[Insert | Finding]:
    call = each.loader.call
    shown = shown_of(each.loader.script, call)
    hidden = bool(options(each.loader.script, call))
    unset = unset_sampler(each.loader.script, call)
    sampler = known_sampler(each.loader.script, call)
    drawn = sampler is not None and sampler.shuffles
    ordered = not hidden and not drawn and (not unset.shuffles if unset else shown is None or is_false(shown.shuffle))
    is_told = drawing_sampler(each.loader.script, call) is None  # which samples, by rank 0
    if ordered or not is_told or not _is_repeated(script, each):
        return
    number = _number(each.there, each.epochs)
    makes = each.makes_loader  # at times, and behind the begin of the turn
    if number and each.loader_there and not makes and not _is_bound_within(each.epochs, each.loader_there):
        if is_here(script, each.there):
            assert each.epochs is not None
            code = f"{each.loader_there}.sampler.set_epoch({number})"
            if may_be_other(program_of(script), each):
                asked = f'isinstance(getattr({each.loader_there}, "sampler", None), DistributedSampler)'
                yield Insert(each.epochs.body[0], f"if {asked}:\n    {code}", _OTHER_ORDER, modules=SAMPLER)
            else:
                yield _set_epoch(each.epochs.body[0], code, words)
    elif is_here(script, each.script):
        if not each.loader_here or not isinstance(each.loop, ast.stmt):
            line = getattr(each.loop, "lineno", call.lineno)
            text = "the sampler of the loader that is run over here cannot be told the epoch (D2)"
            yield Finding(RULE.id, "refused", line, text, "give the loader a name")
            return
        name = f"{each.loader_here}.sampler"
        code = f"{name}.set_epoch({name}.epoch + 1)"
        followed = program_of(script).followed
        over = {followed.status.get(loader) for loader in followed.found.loops.get(each.loop, ())}
        if over <= {"training"}:
            yield _set_epoch(each.loop, code, words)
        else:  # those of evaluations have none to tell it to
            code = f"if isinstance({name}, DistributedSampler):\n    {code}"
            yield Insert(each.loop, code, _OTHER_ORDER, modules=SAMPLER)


def _is_repeated(script: Script, each: Pass) -> bool:
    """Whether a loader goes through its samples more than once: in a loop over epochs, which does not make it anew, or
    since the program comes there by several ways."""
    if each.epochs is not None:
        inside = {*ast.walk(each.epochs)}
        makers = [one for one in (each.loader.call, *each.loader.variant) if one in inside]
        around = [one for maker in makers for one in each.there.ancestors(maker)]
        return not makers or any(isinstance(one, ast.If) and one in inside for one in around)
    passes = program_of(script).followed.found.passes
    return _is_several(each, passes) and not _is_made_beside(each, passes)


def _is_several(each: Pass, passes: Collection[Pass]) -> bool:
    """Whether a program comes to a loop over batches by several ways, none of them a loop over epochs."""
    ways = [one for one in passes if one.epochs is None and one.loader.call is each.loader.call]
    return each.epochs is None and (len(ways) > 1 or any(isinstance(one, ast.For) for one in each.by))


def _is_made_beside(each: Pass, passes: Collection[Pass]) -> bool:
    """Whether a function that is called several times makes a loader and goes through it."""
    scope = each.script.scope(each.loop)
    made = {each.loader.call, *each.loader.variant} & {*ast.walk(scope)}
    return _is_several(each, passes) and bool(made) and not isinstance(scope, ast.Module)


def _set_epoch(at: ast.stmt, code: str, words: Words) -> Insert:
    """Tell the epoch to a sampler, where there is one."""
    code = f"if {words.has_sampler}:\n    {code}" if words.has_sampler else code
    return Insert(at, code, _OTHER_ORDER, modules=words.imports if words.has_sampler else ())


RULE = Rule(
    id="DDP603",
    title="Draw this rank's samples",
    why="""\
torch's DistributedSampler gives each rank other samples, another order in each epoch that it is told (D1, D2). The
batch size stays that of all ranks together, so that the learning rate keeps its meaning (D5). What differs from one
process: the order, and a few samples that come twice where the ranks do not divide their number (D6); a loader that
drops its last batch drops them, too. A data set whose samples depend on those that were loaded before is refused
(D20).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in train_loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

train_set = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
train_loader = DataLoader(
    train_set,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train_loader.sampler.set_epoch(epoch)
    for x, y in train_loader:
        loss = torch.nn.functional.mse_loss(ddp_model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
