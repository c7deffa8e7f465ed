"""DDP607: rank 0 writes files; the others wait where they may read them."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from ...facts.asking_commands import only_asks
from ...facts.bars import is_read
from ...facts.called_modules import last_name
from ...facts.effects import (
    FOLDERS,
    effects,
    handed_on,
    has_unknown_mode,
    makes_folder,
    opened_for_writing,
    opened_path,
    reads,
    reads_and_writes,
    sample_code,
)
from ...facts.flow.unequal import comes_unequally
from ...facts.header import is_in_group
from ...facts.loggers import loggers
from ...facts.on_rank_zero import made_on_rank_zero, searches
from ...facts.reach import all_names
from ...facts.same_file import is_ever_used, may_be_read_by, writes_a_file
from ...facts.script import KEPT, Script
from ...facts.standard_error import is_stderr
from ...plain_words import Words
from ...rule import ChangeArgument, Edit, Finding, Guard, Insert, Replace, Rule
from ...targets import Target
from ..exact import loads
from ..lint.map_location import loads_anywhere
from .caught_writes import caught_by
from .disabled_runs import everywhere
from .logged import is_log_line, is_logged, prints
from .looked_first import waits_for_lookers
from .rank_0_alone import given_to, is_of_rank_0, puts_together, saved_to
from .read_first import waits_for_readers
from .words import REMEDY, is_here, is_quiet, load_device, program_of

_LOOKS = frozenset(
    {"exists", "isfile", "isdir", "listdir", "scandir", "walk", "glob", "iglob", "rglob", "stat", "is_file", "getsize"}
    | {"iterdir", "File", "memmap", "ImageFolder", "DatasetFolder", "VideoCapture", "from_pretrained", "imread"}
)
_TEXTS = frozenset({"str", "repr", "os.path.join", "os.path.abspath"})
_END_FOLDERS = frozenset({"shutil.rmtree", "os.rmdir", "os.removedirs"})
_BEFORE_A_POINT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)  # without parentheses of their own
_LEAVES = (ast.Return, ast.Continue, ast.Break)
_READS = re.compile(r"(open|load|read)(?!_state_dict)")  # how what libraries read files with begins
_ASKS = frozenset({"os.popen"})  # for what a command prints
_PROGRESS = ("progress.bar.", "progress.counter.", "progress.spinner.")  # the package's modules of classes
# What is computed for them, where it needs a name.
_NAMES = {"save_image": "images", "imsave": "image", "imwrite": "image", "savemat": "arrays", "to_csv": "table"}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Guard what writes; give the other ranks the null device where a file is opened."""
    per_sample = sample_code(script)
    done: set[ast.stmt] = set()
    made = {call for calls in loggers(script).values() for call in calls} | set(everywhere(script))
    calls = (call for call in effects(script) if call not in per_sample and call not in made)
    edits = [edit for call in calls for edit in _once(script, call, done, target.words)]
    guarded = {edit.at for edit in edits if isinstance(edit, Guard) and not edit.named}
    for edit in edits:  # rank 0 writes what comes one after the other, and the others wait once
        if not (isinstance(edit, Insert) and edit.at in guarded and _next(script, edit.at) in guarded):
            yield edit
    yield from waits_for_readers(script, target)
    yield from waits_for_lookers(script, target)
    for call in script.find(ast.Call):
        if has_unknown_mode(script, call) or reads_and_writes(script, call):
            message = "this file may be written, and in which way is only known in the run"
            yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
    for function, call, _ in handed_on(script):
        if call not in per_sample:
            message = f"{ast.unparse(call.func)} calls {ast.unparse(function)} on every rank"
            yield Finding(RULE.id, "refused", function.lineno, message, REMEDY)
    yield from _bars(script, target.words)
    yield from _loaded(script, target)


def _once(script: Script, call: ast.Call, done: set[ast.stmt], words: Words) -> Iterator[Edit | Finding]:
    statement = script.statement(call)
    name = script.qualified(call.func)
    here = f"{{}} if {words.is_rank_0} else os.devnull"
    path = opened_for_writing(script, call)
    if path is not None:
        yield Replace(path, here, "write the file on rank 0", modules=(*words.imports, "import os"))
        if isinstance(script.parents[call], ast.withitem) or _is_closed_at_once(script, call):
            yield from _wait(script, call, words)
        return
    if (owner := opened_path(script, call)) is not None:
        null, module = _null_path(script)
        code = f"{{}} if {words.is_rank_0} else {null}"
        yield Replace(
            owner,
            f"({code})" if isinstance(owner, _BEFORE_A_POINT) else code,
            "write the file on rank 0",
            modules=(*words.imports, "import os", *module),
        )
        if isinstance(script.parents[call], ast.withitem | ast.Attribute):
            yield from _wait(script, call, words)
        return
    if makes_folder(script, call):
        yield from _folder(script, call, name, words)
        return
    if _is_only_entered(script, call):
        code = f"{{}} if {words.is_rank_0} else contextlib.nullcontext()"
        message = f"call {ast.unparse(call.func)} on rank 0"
        yield Replace(call, code, message, modules=(*words.imports, "import contextlib"))
        return
    if not isinstance(statement, ast.Expr) or statement.value is not call or statement in done:
        if name in _ASKS or only_asks(script, call):
            message = f"every rank calls {ast.unparse(call.func)}, since what it gives back is used"
            yield Finding(RULE.id, "note", call.lineno, message, "none needed where the command writes nothing")
        elif statement not in done:
            message = f"what {ast.unparse(call.func)} gives back is used, and only rank 0 may call it"
            remedy = f'open it with "r" where it is only read, or {REMEDY}' if name == "h5py.File" else REMEDY
            yield Finding(RULE.id, "refused", call.lineno, message, remedy)
        return
    done.add(statement)
    if not is_quiet(script, call) or puts_together(script, call):
        place = saved_to(call)
        if puts_together(script, call) and (name != "torch.save" or place is None):
            message = "what this call is given is computed by other calls, which every rank has to make"
            yield Finding(RULE.id, "refused", call.lineno, message, "compute it in a line before")
            return
        if name != "torch.save" or place is None:
            yield from _computed(script, call, words)
            yield from _wait(script, call, words)
            return
        yield Replace(place, here, "write the file on rank 0", modules=(*words.imports, "import os"))
        yield from _wait(script, call, words)
        return
    yield Guard(statement, words.is_rank_0, f"call {ast.unparse(call.func)} on rank 0", modules=words.imports)
    yield from _wait(script, call, words)


def _is_closed_at_once(script: Script, call: ast.Call) -> bool:
    """Whether nobody keeps a file that is opened in a statement: `json.dump(history, open(path, "w"))`,
    `open(path, "w").write(text)`."""
    return isinstance(script.statement(call), ast.Expr) and isinstance(script.parents[call], ast.Call | ast.Attribute)


# They give the run that there is, which the other ranks have not.
_ASK_FOR_RUN = frozenset(
    {"active_run", "last_active_run", "get_artifact_uri", "current_task", "get_last_run", "get_running_experiment"}
    | {"get_global_experiment", "globals", "locals"}
)


def _is_only_entered(script: Script, call: ast.Call) -> bool:
    """Whether what records a run is begun by `with`, and nobody but rank 0 asks for it: `with mlflow.start_run():`."""
    item, statement = script.parents[call], script.statement(call)
    if not isinstance(item, ast.withitem) or not made_on_rank_zero(script, call) or searches(script, call):
        return False
    if not is_quiet(script, call) or any(isinstance(each, ast.NamedExpr) for each in ast.walk(call)):
        return False  # every rank has to compute what it is given
    if any(name in _ASK_FOR_RUN for each in program_of(script).scripts for name in all_names(each)):
        return False
    name = item.optional_vars
    if not isinstance(statement, ast.With) or not isinstance(name, ast.Name | None):
        return False
    uses = [each for each in script.find(ast.Name) if name is not None and each.id == name.id and each is not name]
    shared = (each for each in script.find(ast.Global, ast.Nonlocal) if name is not None and name.id in each.names)
    return not any(shared) and all(
        is_of_rank_0(script, each) and script.scope(each) is script.scope(call) for each in uses
    )


def _null_path(script: Script) -> tuple[str, tuple[str, ...]]:
    """The null device as a path, in the file's own words, and the import that it needs."""
    name = next((name for name, meaning in script.imported.items() if meaning == "pathlib.Path"), "")
    return f"{name or 'pathlib.Path'}(os.devnull)", () if name else ("import pathlib",)


def _next(script: Script, statement: ast.stmt) -> ast.stmt | None:
    block = script.block(statement)
    place = block.index(statement) + 1
    return block[place] if place < len(block) else None


def _wait(script: Script, call: ast.Call, words: Words) -> Iterator[Edit | Finding]:
    """Let the other ranks wait for a file that they may read later, or for the end of a folder that they make anew."""
    program = program_of(script)
    visits = program.followed.found.visits
    written, _ = visits.get(call, (0, 0))
    found = [(each, read) for each in program.scripts for read in _reads(each)] if writes_a_file(script, call) else []
    later = ((each, read) for each, read in found if visits.get(read, (0, math.inf))[1] > written)
    waits = any(
        may_be_read_by(script, call, each, read) and is_ever_used(program.scripts, each.scope(read))
        for each, read in later
    )
    if script.qualified(call.func) in _END_FOLDERS:
        waits |= any(makes_folder(each, other) for each in program.scripts for other in each.find(ast.Call))
    if not waits:
        return
    at = child = script.statement(call)
    readers = {read for each, read in found if each.path == script.path}
    for around in script.ancestors(at):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.For | ast.While):
            break
        if isinstance(around, ast.Try) and around.handlers and child in around.body:  # rank 0 alone may raise in it
            inside = {*ast.walk(around)}
            calls = (each for each in inside if isinstance(each, ast.Call) and each.lineno > call.lineno)
            reads_there = readers & inside or any(last_name(each.func) in script.defined for each in calls)
            if reads_there or any(isinstance(each, _LEAVES) for each in inside):
                break  # what reads it, or leaves, does so before the ranks come behind it
            at = around
        child = around  # type: ignore[assignment]
    if (caught := caught_by(script, at)) is not None:
        there, handled = caught
        place = f"line {handled.lineno}" if is_here(script, there) else f"{there.path.name}, line {handled.lineno}"
        message = f"rank 0 alone writes here, and where it cannot, goes on behind a `try` ({place}) without the others"
        yield Finding(RULE.id, "refused", call.lineno, message, "put a `try` around this alone")
    yield Insert(at, words.barrier, "wait until the file is complete", "after", modules=words.imports)


def _computed(script: Script, call: ast.Call, words: Words) -> Iterator[Edit | Finding]:
    """Compute on all ranks what a call is given that only rank 0 makes."""
    taken = {node.id for node in script.find(ast.Name)}
    names = {word.value: word.arg for word in call.keywords}
    named: list[tuple[int, str]] = []
    for place, part, is_before in given_to(script, call):
        if not is_before:
            continue
        if isinstance(part, ast.Starred) or (part in names and names[part] is None):
            message = "what this call is given is computed by other calls, which every rank has to make"
            yield Finding(RULE.id, "refused", call.lineno, message, "compute it in a line before")
            return
        name = names.get(part) or _NAMES.get(last_name(call.func), "value")
        while name in taken:
            name += "_"
        taken.add(name)
        named.append((place, name))
    message = f"call {ast.unparse(call.func)} on rank 0, with what all have computed"
    yield Guard(script.statement(call), words.is_rank_0, message, modules=words.imports, named=tuple(named))


def _folder(script: Script, call: ast.Call, name: str, words: Words) -> Iterator[Edit | Finding]:
    """Let a folder be there already: another rank may have been faster."""
    message = "the folder may be there: every rank makes it"
    around = next((each for each in script.ancestors(call) if isinstance(each, ast.Try)), None)
    in_body = around is not None and any(call is part for each in around.body for part in ast.walk(each))
    if around is not None and in_body and not all(map(_lets_be, around.handlers)) and not _is_missing(script, call):
        reason = "what is done where the folder is there already would be done by a rank that is slower"
        yield Finding(RULE.id, "refused", call.lineno, reason, f"look for it before, with os.path.exists, or {REMEDY}")
        return
    said = [word.value for word in call.keywords if word.arg == "exist_ok"]
    is_new = _is_new(call)
    if around is not None and in_body and is_new and is_in_group(script, call) and not _is_missing(script, call):
        then = _for_a_new_one(script, call, around)
        alike = then and around.handlers and all(map(_catches, around.handlers))
        if alike and not _is_handed_on(script, call):
            yield from _new_folder(script, call, around, then, words)
            return
    if is_new:
        yield ChangeArgument(call, "exist_ok", "True", message, instead="exist_ok" if said else "")
    if name == "os.mkdir":
        assert isinstance(call.func, ast.Attribute | ast.Name)
        yield Replace(call.func, "os.makedirs", message, modules=("import os",))


def _new_folder(
    script: Script, call: ast.Call, around: ast.Try, then: list[ast.stmt], words: Words
) -> Iterator[Edit | Finding]:
    """Let rank 0 make a folder where what follows is for a new one: `try: os.makedirs(path); print("Created")`."""
    statement, program = script.statement(call), program_of(script)
    there = [each for handler in around.handlers for each in handler.body]
    given = [part for part in ast.walk(call) if isinstance(part, ast.Name | ast.Attribute)]
    known = {*map(ast.unparse, given), *(each.name for each in around.handlers if each.name)}
    writes = any(part is written for each in there for part in ast.walk(each) for written in effects(script))
    only_shown = not writes and all(_is_shown(script, each, known) for each in (*then, *there))
    unequal = comes_unequally(program.followed.found, program.followed.status, script, call)
    if not only_shown or unequal or statement not in around.body or not _only_makes_folder(script, statement):
        reason = "more is done here for a new folder, or one that is there already, than to say so"
        yield Finding(RULE.id, "refused", call.lineno, reason, f"look for it before, with os.path.exists, or {REMEDY}")
        return
    yield Guard(statement, words.is_rank_0, "make the folder on rank 0", modules=words.imports)
    if statement is _first_new(script, around):
        yield Insert(around, words.barrier, "wait until the folder is there", "after", modules=words.imports)


def _for_a_new_one(script: Script, call: ast.Call, around: ast.Try) -> list[ast.stmt]:
    """What is done behind a folder that is made in a `try`, but for other folders."""
    first, statement = _first_new(script, around), script.statement(call)
    block = script.block(statement)
    behind = around.body[around.body.index(first) + 1 :] + around.orelse
    if statement not in around.body:
        behind = block[block.index(statement) + 1 :] + behind
    return [each for each in behind if not isinstance(each, ast.Pass) and not _only_makes_folder(script, each)]


def _first_new(script: Script, around: ast.Try) -> ast.stmt:
    """The first statement of a `try` that makes a folder which may not be there yet."""
    return next(
        each
        for each in around.body
        if any(isinstance(part, ast.Call) and makes_folder(script, part) and _is_new(part) for part in ast.walk(each))
    )


def _is_new(call: ast.Call) -> bool:
    """Whether a call that makes a folder raises where it is there already."""
    said = [word.value for word in call.keywords if word.arg == "exist_ok"]
    return not said or ast.unparse(said[0]) == "False"


def _is_handed_on(script: Script, call: ast.Call) -> bool:
    """Whether a call is in a function that others than the program itself may call: `atexit.register(make)`."""
    program = program_of(script)
    waiting, seen = [(call, script)], set[ast.AST]()
    while waiting:
        at, there = waiting.pop()
        function = there.scope(at)
        if isinstance(function, ast.Module) or function in seen:
            continue
        seen.add(function)
        calls = program.followed.found.called_with.get(function, set())
        if not calls or not isinstance(function, ast.FunctionDef) or _is_named(program.scripts, function.name):
            return True
        waiting += calls
    return False


def _is_named(scripts: Iterable[Script], name: str) -> bool:
    """Whether a function is named where it is not called."""
    return any(
        name == (node.id if isinstance(node, ast.Name) else node.attr)
        and not (isinstance(parent := script.parents[node], ast.Call) and parent.func is node)
        for script in scripts
        for node in script.find(ast.Name, ast.Attribute)
    )


def _is_shown(script: Script, statement: ast.stmt, known: Collection[str]) -> bool:
    """Whether a statement does nothing, or only says a text, in which may be what folders are called, and an error: for
    a number of all ranks they would wait for one that does not come here."""
    if isinstance(statement, ast.Pass):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    says = prints(script, statement) or is_logged(script, statement) or is_log_line(script, statement)
    if not says or not isinstance(call, ast.Call):
        return False
    waiting: list[ast.AST] = [*call.args, *(word.value for word in call.keywords)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name | ast.Attribute) and ast.unparse(part) in known:
            continue
        if isinstance(part, ast.Call) and script.qualified(part.func) in _TEXTS:
            waiting += part.args
        elif isinstance(part, ast.Attribute | ast.JoinedStr | ast.FormattedValue | ast.BinOp | ast.Tuple):
            waiting += ast.iter_child_nodes(part)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "format":
            waiting += [part.func.value, *part.args]
        elif not isinstance(part, ast.Constant | ast.operator | ast.expr_context):
            return False
    return True


def _only_makes_folder(script: Script, statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and makes_folder(script, value)


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is come to where a folder is there already, and neither raises nor asks why."""
    caught = "" if handler.type is None else ast.unparse(handler.type)
    names = r"FileExistsError|OSError|IOError|EnvironmentError|Exception"
    asks = any(isinstance(each, ast.Raise | ast.If) for each in ast.walk(handler))
    return not asks and (handler.type is None or re.search(names, caught) is not None)


def _is_missing(script: Script, call: ast.Call) -> bool:
    """Whether a folder is only made where it was not found: `if not os.path.exists(path): os.makedirs(path)`."""
    folder = call.args[0] if call.args else getattr(call.func, "value", call.func)
    tests = (each.test for each in script.ancestors(call) if isinstance(each, ast.If))
    looks = (each for test in tests for each in ast.walk(test) if isinstance(each, ast.Call))
    asked = (each for each in looks if last_name(each.func) in ("exists", "isdir", "is_dir"))
    return any(
        ast.unparse(folder) in (*map(ast.unparse, each.args), ast.unparse(each.func).rpartition(".")[0])
        for each in asked
    )


def _lets_be(handler: ast.ExceptHandler) -> bool:
    """Whether nothing is done about a folder that is there, but to say so."""
    if handler.type is None or not re.search(r"FileExistsError|OSError|IOError", ast.unparse(handler.type)):
        return True
    passes = (ast.Pass, ast.Raise, ast.If, ast.Expr)
    ends = any(isinstance(each, ast.Call) and last_name(each.func) == "exit" for each in ast.walk(handler))
    return all(isinstance(each, passes) for each in handler.body) and not ends


def _loaded(script: Script, target: Target) -> Iterator[Edit]:
    """Load tensors to this rank's device, not to the one that they were saved from (I8)."""
    if not target.is_accelerator:  # only what may come from one
        for call in loads_anywhere(script):
            yield ChangeArgument(call, "map_location", load_device(target), "load tensors to the CPU")
        return
    device = f"str({target.words.device})" if target.words.device else load_device(target)
    for call in loads.loads(script):
        for_parameters = target.loads_on_host or _is_for_parameters(script, call)
        where = load_device(target) if for_parameters else f'{{"{target.device_type}:0": {device}}}'
        yield ChangeArgument(call, "map_location", where, loads.MESSAGE)


def _is_for_parameters(script: Script, load: ast.Call) -> bool:
    """Whether what a call loads is copied into a model, or an optimizer: `model.load_state_dict(torch.load(path))`."""
    node = script.parents[load]
    while isinstance(node, ast.Subscript):
        node = script.parents[node]
    return isinstance(node, ast.Call) and last_name(node.func) == "load_state_dict"


@lru_cache(maxsize=KEPT)
def _reads(script: Script) -> tuple[ast.Call, ...]:
    """The calls that read files or look for them, but for a folder that is made where it is not there."""
    writers = {*effects(script)}
    return tuple(
        call
        for call in script.find(ast.Call)
        if call not in writers
        and (reads(script, call) or (_is_reader(script, last_name(call.func)) and not _makes_folder(script, call)))
    )


def _is_reader(script: Script, name: str) -> bool:
    return name in _LOOKS or (name not in script.defined and _READS.match(name) is not None)


def _makes_folder(script: Script, look: ast.Call) -> bool:
    """Whether all that comes of a look for a folder is that it is made, by every rank."""
    test: ast.AST = look
    if isinstance(script.parents[test], ast.UnaryOp):
        test = script.parents[test]
    made = script.parents[test]
    if not isinstance(made, ast.If) or made.test is not test or made.orelse:
        return False
    calls = [each.value for each in made.body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    return len(calls) == len(made.body) and all(script.qualified(call.func) in FOLDERS for call in calls)


def _bars(script: Script, words: Words) -> Iterator[Edit]:
    message = "show the bar on rank 0"
    for call in script.find(ast.Call):
        name, given = script.qualified(call.func), {word.arg for word in call.keywords}
        if name.startswith("tqdm") and name.rpartition(".")[2] in ("tqdm", "trange", "tqdm_notebook"):
            if not given & {"disable", "file"} and is_in_group(script, call) and _counts(script, call):
                silent = f'None if {words.is_rank_0} else open(os.devnull, "w")'
                yield ChangeArgument(call, "file", silent, message, modules=(*words.imports, "import os"))
            elif "disable" not in given and is_in_group(script, call):
                yield ChangeArgument(call, "disable", f"{words.rank} != 0", message, modules=words.imports)
        elif name.startswith(_PROGRESS) and "file" not in given and is_in_group(script, call):
            modules = (*words.imports, "import sys")
            yield ChangeArgument(call, "file", f"sys.stderr if {words.is_rank_0} else None", message, modules=modules)
        elif name == "print" and "file" in given and is_in_group(script, call) and not _of_failure(script, call):
            stream = next(word.value for word in call.keywords if word.arg == "file")
            if is_stderr(program_of(script).scripts, script, stream):
                template = f"{{}} if {words.is_rank_0} else None"
                yield Replace(stream, template, "print to stderr on rank 0", modules=words.imports)


def _counts(script: Script, call: ast.Call) -> bool:
    """Whether the number that a bar has come to is read: one that is disabled does not count."""
    parent = script.parents[call]
    named = parent.targets if isinstance(parent, ast.Assign) else []
    if isinstance(parent, ast.withitem) and parent.optional_vars is not None:
        named = [parent.optional_vars]
    return is_read(script, set(map(ast.unparse, named)))


def _of_failure(script: Script, call: ast.Call) -> bool:
    """Whether a line is printed where something fails, which may be on one rank alone."""
    block = script.block(script.statement(call))
    ends = any(isinstance(each, ast.Raise | ast.Return) or "exit" in ast.unparse(each) for each in block)
    return ends or any(isinstance(each, ast.ExceptHandler) for each in script.ancestors(call))


RULE = Rule(
    id="DDP607",
    title="Write files on rank 0",
    why="""\
Every rank would write the same files and show the same bars (I2, I3). Rank 0 does; where the program reads files after
that, or looks for them, the others wait until one is complete (I10), and where one is written since it was not found,
until all have looked. A folder is made by all, and may be there already (I5).""",
    before="""\
import os

import torch
from torch.utils.data import DataLoader, TensorDataset

os.makedirs("runs")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with open("runs/log.txt", "w") as log:
    log.write("done")
torch.save(model.state_dict(), "runs/model.pt")
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

os.makedirs("runs", exist_ok=True)
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with open("runs/log.txt" if dist.get_rank() == 0 else os.devnull, "w") as log:
    log.write("done")
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "runs/model.pt")
dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
