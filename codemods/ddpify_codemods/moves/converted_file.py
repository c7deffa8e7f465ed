"""Move a converted file to another target, or back to one device.

Only what names the target is rewritten here (arguments, devices, imports, its own lines): the new target's rules do
the rest, on the result, as in any converted file (view.py). Devices go by way of the GPU's words, which the rules of
every target know. For one device, all that conversions put in is taken out. What a person has added stays, or is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from ..import_places import insertions
from ..named_samplers import named_sampler
from ..options import LOCAL_BATCH_NORM
from ..rule import ChangeArgument, Delete, DropImport, Edit, Finding, Replace, RewriteImport
from ..rules.exact.loads import spread_with
from ..runtime_names import RUNTIME, import_from, runtime_name, shown
from ..targets import Target, of_backend
from ..view import AROUND, SHARDS, TORCH, View, called_at_once, is_wrap, settled_key, sharded_class

_TARGETS_OWN = {"device_ids", "gradient_as_bucket_view", "reduction"}
_ALONE = {"get_rank": "0", "get_local_rank": "0", "get_world_size": "1"}


@dataclass(frozen=True)
class Move:
    """What moves one file: edits of its original tree, each with the rule whose work it changes, and findings."""

    edits: tuple[tuple[str, Edit], ...] = ()
    findings: tuple[Finding, ...] = ()


def target_of(views: Iterable[View]) -> Target | None:
    """The target that a program is converted for, by its process group; None where that does not say."""
    for seen in views:
        for call in _calls(seen):
            if runtime_name(call.func, seen.names) == "init_process_group" and call.args:
                first = call.args[0]
                return of_backend(str(first.value)) if isinstance(first, ast.Constant) else None
    return None


def starts_itself(views: Iterable[View]) -> bool:
    """Whether a converted program starts its own processes."""
    calls = (call for seen in views for call in _calls(seen) if _joins(seen, call))
    return any(word.arg == "nprocs" for call in calls for word in call.keywords)


def is_per_process(views: Iterable[View]) -> bool:
    """Whether the batch size of a converted program is that of each process."""
    return any(_size_of_each(seen, node) is not None for seen in views for node in ast.walk(seen.original))


def to_target(
    seen: View, source: Target, target: Target, with_batch_norm: bool = False, whole_batches: bool = False
) -> Move:
    """Name another target where the file names the one that it was converted for.

    `with_batch_norm`: what the file says of BatchNorm's statistics gives way to what the target's arguments say too.
    `whole_batches`: the batch size is that of all processes again.
    """
    own = _TARGETS_OWN | ({LOCAL_BATCH_NORM.partition("=")[0]} if with_batch_norm else set())
    edits: list[tuple[str, Edit]] = []
    for call in _calls(seen):
        name = runtime_name(call.func, seen.names)
        if name == "init_process_group" and call.args and isinstance(call.args[0], ast.Constant):
            given = [f'"{target.backend}"', *filter(None, [target.init_arguments])]
            kept = [keyword for keyword in call.keywords if keyword.arg not in ("init_method", "nprocs")]
            edits += _with_arguments("DDP101", call, given, kept, f"join a group of {target.backend}", target.modules)
        elif is_wrap(call, seen.names) and runtime_name(call.func, seen.names) != SHARDS:
            given = ["{}", *filter(None, [target.wrapper_arguments])]
            kept = [keyword for keyword in call.keywords if keyword.arg not in own]
            message = f"wrap as the {target.name} target needs it"
            edits += _with_arguments("DDP102", call, given, kept, message, (), target.imports, call.args[:1])
    findings: list[Finding] = []
    if source.device != target.device:
        edits += _off_device(seen, source)
        edits += _loads(seen, source, target)
        findings += _left_on_device(seen, source)
    if target.is_accelerator and not source.is_accelerator:
        findings += _named_cpu(seen, target)
    edits += _imports_of(seen, source, target.modules)
    for node in ast.walk(seen.original) if whole_batches else ():
        if (size := _size_of_each(seen, node)) is not None:
            message = "the batch size is that of all processes"
            edits.append(("DDP124", Replace(node, "{}", message, parts=(size,), bare=True)))  # type: ignore[arg-type]
    return Move(tuple(edits), tuple(findings))


def to_one_device(seen: View, source: Target | None) -> Move:
    """Take out what conversions put in."""
    deleted = [node for node in ast.walk(seen.original) if isinstance(node, ast.stmt) and _goes(seen, node)]
    edits: list[tuple[str, Edit]] = [
        ("DDP101", Delete(node, "leave out what is for several devices")) for node in deleted
    ]
    gone = {inner for node in deleted for inner in ast.walk(node)}
    done: set[ast.AST] = set(gone)
    arguments = {each for call in _calls(seen) for each in (*call.args, *(word.value for word in call.keywords))}
    for node in ast.walk(seen.original):
        if (size := _size_of_each(seen, node)) is not None:
            message = "the batch size is that of the one process"
            edits.append(("DDP124", Replace(node, "{}", message, parts=(size,), bare=True)))  # type: ignore[arg-type]
            gone.update({node.right, *ast.walk(node.right)})  # type: ignore[attr-defined]
            done.update(ast.walk(node.right))  # type: ignore[attr-defined]
    for call in _calls(seen):
        name = runtime_name(call.func, seen.names)
        message = f"leave out {name}"
        if call in gone:
            continue
        for edit in _without_sampler(seen, call):
            edits.append(("DDP109", edit))
            done.update(ast.walk(call))
        if (inner := _called_at_once(seen, call)) is not None:
            code, part = inner
            message = f"leave out {runtime_name(call.func.func, seen.names)}"  # type: ignore[attr-defined]
            edits.append(("DDP105", Replace(call, code, message, parts=(part,), bare=code == "{}")))
            gone.add(call.func)
            done.update(ast.walk(call.func.func))  # type: ignore[attr-defined]
            continue
        if (word := sharded_class(call, seen.names)) is not None:
            edits.append(("DDP125", Replace(call.func, ast.unparse(word.value), message)))
            edits.append(("DDP125", ChangeArgument(call, "", "", message, "optimizer_class")))
        elif name in _ALONE:
            edits.append(("DDP101", Replace(call, _ALONE[name], message)))
        elif (name in AROUND or name == "broadcast" or is_wrap(call, seen.names)) and call.args:
            bare = call in arguments or isinstance(call.args[0], (ast.Name, ast.Attribute, ast.Call))
            edits.append(("DDP105", Replace(call, "{}", message, parts=(call.args[0],), bare=bare)))
        elif name not in TORCH:
            continue
        done.update(ast.walk(call.func))
    edits += [("DDP109", edit) for edit in _imports_of_torch(seen)]
    findings = [_stays(node, seen) for node in _runtime_uses(seen) if node not in done]
    if source is not None:
        edits += _loads(seen, source, None)
        if not source.names_device:
            edits += _off_device(seen, source)
            findings += _left_on_device(seen, source)
        edits += _imports_of(seen, source)
    return Move(tuple(edits), tuple(findings))


def _loads(seen: View, source: Target, target: Target | None) -> Iterator[tuple[str, Edit]]:
    """Load tensors onto the devices of a target; None for one device, where torch.load does so by itself."""
    own = source.load_devices
    for call in _calls(seen) if own else ():
        words = [word for word in call.keywords if word.arg == "map_location"]
        if words and ast.unparse(words[0].value) == ast.unparse(ast.parse(own, mode="eval").body):
            code = target.load_devices if target is not None else ""
            message = "load tensors to this rank's device" if code else "leave out map_location"
            yield "DDP131", ChangeArgument(call, "map_location" if code else "", code, message, "map_location")
        for word in call.keywords:
            inner = _spread(word.value, own) if word.arg is None else None
            if inner is not None:  # `**{"map_location": …, **given}`
                code = spread_with(target.load_devices) if target is not None and target.load_devices else "{}"
                yield "DDP131", Replace(word.value, code, "load tensors to this rank's device", parts=(inner,))


def _spread(node: ast.expr, devices: str) -> ast.expr | None:
    """What a conversion has put the devices of a target before; None where it has not."""
    inner = node.values[-1] if isinstance(node, ast.Dict) and node.values else None
    made = "" if inner is None else spread_with(devices).replace("{}", ast.unparse(inner))
    return inner if made and ast.unparse(ast.parse(made, mode="eval").body) == ast.unparse(node) else None


def _size_of_each(seen: View, node: ast.AST) -> ast.expr | None:
    """For `batch_size * get_world_size()`, the batch size."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult) or not isinstance(node.right, ast.Call):
        return None
    return node.left if runtime_name(node.right.func, seen.names) == "get_world_size" else None


def _calls(seen: View) -> Iterator[ast.Call]:
    return (node for node in ast.walk(seen.original) if isinstance(node, ast.Call))


def _joins(seen: View, call: ast.Call) -> bool:
    return runtime_name(call.func, seen.names) == "init_process_group"


def _with_arguments(
    rule: str,
    call: ast.Call,
    given: list[str],
    kept: list[ast.keyword],
    message: str,
    modules: tuple[str, ...],
    imports: tuple[str, ...] = (),
    parts: Iterable[ast.expr] = (),
) -> list[tuple[str, Edit]]:
    """Give a call other arguments; `{}` among the given ones stands for a part, the kept keywords follow."""
    words = [*given, *(f"{keyword.arg}={{}}" if keyword.arg else "**{}" for keyword in kept)]
    template = f"{ast.unparse(call.func)}({', '.join(words)})"
    values = (*parts, *(keyword.value for keyword in kept))
    code = template.format(*map(ast.unparse, values))
    if ast.unparse(ast.parse(code)) == ast.unparse(call):
        return []
    return [(rule, Replace(call, template, message, imports, modules, values))]


# Off a device


def _off_device(seen: View, source: Target) -> Iterator[tuple[str, Edit]]:
    """Name GPUs where a file names the devices of its target, and leave out the target's own lines."""
    if source.has_cuda_words or not source.is_accelerator:
        return
    message = f"name the GPU instead of the {source.name} device"
    places = _device_arguments(seen)
    joins = {each for call in _calls(seen) if _joins(seen, call) for each in ast.walk(call)}
    for node in ast.walk(seen.original):
        if _is_device(node, source):
            yield "DDP103", Replace(node, '"cuda"' if node in places else 'torch.device("cuda")', message)
        elif isinstance(node, ast.Constant) and node.value == source.device_type and node not in joins:
            yield "DDP103", Replace(node, '"cuda"', message)
        elif isinstance(node, ast.Attribute) and source.module and ast.unparse(node) == source.module:
            yield "DDP122", Replace(node, "torch.cuda", message)
        elif isinstance(node, ast.Attribute) and source.renames and node.attr == f"is_{source.device_type}":
            yield "DDP122", Replace(node, "{}.is_cuda", message, parts=(node.value,))
        elif isinstance(node, ast.stmt) and _is_own_line(node, seen, source):
            yield "DDP113", Delete(node, f"leave out what is for the {source.name} device")


def _is_device(node: ast.AST, source: Target) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and not source.names_device and ast.unparse(node) == source.device


def _is_own_line(node: ast.stmt, seen: View, source: Target) -> bool:
    """Whether a statement ends a step on the target's device, or seeds it."""
    called = settled_key(node, seen.names).partition("(")[0]
    return bool(called) and called in (source.step.partition("(")[0], source.seed)


def _imports_of(seen: View, source: Target, kept: tuple[str, ...] = ()) -> Iterator[tuple[str, Edit]]:
    """Leave out the imports of a target, but for what the file itself uses of them."""
    used = {node.id for node in _own_uses(seen, source)}
    modules = {line.removeprefix("import ") for line in source.modules if line not in kept} - used
    for node in ast.walk(seen.original):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            drop = [name for name in names if name in modules]
            if drop == names:
                yield "DDP101", Delete(node, "")
            else:
                yield from (("DDP101", DropImport(node, name, "")) for name in drop)


def _device_arguments(seen: View) -> set[ast.AST]:
    """What stands where a string will do: `.to(…)`, `device=…`."""
    found: set[ast.AST] = set()
    for call in _calls(seen):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            found.update(call.args[:1])
        found.update(word.value for word in call.keywords if word.arg in ("device", "map_location"))
    return found


def _own_uses(seen: View, source: Target) -> Iterator[ast.Name]:
    """Where the modules of a target are used other than by conversions."""
    modules = {line.removeprefix("import ") for line in source.modules} - {RUNTIME}
    own: set[ast.AST] = set()
    for node in ast.walk(seen.original):
        if _is_device(node, source) or (isinstance(node, ast.stmt) and _is_own_line(node, seen, source)):
            own.update(ast.walk(node))
    for node in ast.walk(seen.original):
        if isinstance(node, ast.Name) and node.id in modules and node not in own:
            yield node


def _left_on_device(seen: View, source: Target) -> Iterator[Finding]:
    for node in _own_uses(seen, source):
        message = f"{node.id} is still used here"
        yield Finding("DDP103", "warning", node.lineno, message, "write what the new device needs")
    for call in _calls(seen) if not source.scales_gradients else ():
        off = any(word.arg == "enabled" and ast.unparse(word.value) == "False" for word in call.keywords)
        if off and ast.unparse(call.func).endswith("GradScaler"):
            message = f"GradScaler is switched off, as {source.name} wants it; float16 on a GPU needs it"
            yield Finding("DDP112", "warning", call.lineno, message, "enable it, or let autocast use bfloat16")


def _named_cpu(seen: View, target: Target) -> Iterator[Finding]:
    text = ast.unparse(seen.original)
    if "cuda" in text:
        return  # the script chooses when it runs
    for node in ast.walk(seen.original):
        if isinstance(node, ast.Constant) and node.value == "cpu":
            message = f"the device is the CPU by name, also for the {target.name} target"
            remedy = f"write {target.device} where the device is chosen, or convert the original"
            yield Finding("DDP103", "warning", node.lineno, message, remedy)
            return


# Back to one device


def _goes(seen: View, node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == RUNTIME and not node.level
    return bool(settled_key(node, seen.names))


def _called_at_once(seen: View, call: ast.Call) -> tuple[str, ast.expr] | None:
    """For `rank_zero_value(lambda: x)()` and `rank_zero_only(getattr)(x, "name")`, what they stand for."""
    around = call.func
    if not isinstance(around, ast.Call) or runtime_name(around.func, seen.names) not in AROUND or not around.args:
        return None
    bare = ast.Call(around.args[0], call.args, call.keywords)
    inner = called_at_once(ast.copy_location(bare, call))
    if isinstance(bare.func, ast.Lambda):
        return None if inner is None else ("{}", inner)
    return None if not isinstance(inner, ast.Attribute) else (f"{{}}.{inner.attr}", inner.value)


def _without_sampler(seen: View, call: ast.Call) -> Iterator[Edit]:
    """Let a loader say again what its sampler stands for."""
    found = named_sampler(call, seen.names)
    if found is None or len(found.made.args) > 1 or {word.arg for word in found.made.keywords} - {"shuffle"}:
        return
    message = "leave the order to the loader"
    if found.shuffle is None:
        yield ChangeArgument(call, "", "", message, "sampler")
    elif found.made.keywords:
        yield ChangeArgument(call, "shuffle", "{}", message, "sampler", parts=(found.shuffle,))
    else:
        yield ChangeArgument(call, "shuffle", "True", message, "sampler")
    named = found.named_here
    if named is not None and _is_named_for_sampler(seen, ast.unparse(named.target)):
        yield Replace(named, "{}", "", parts=(named.value,), bare=True)


def _is_named_for_sampler(seen: View, name: str) -> bool:
    """Whether nothing but samplers asks for a name that data sets were given in their loaders' calls."""
    uses = {node for node in ast.walk(seen.original) if isinstance(node, ast.Name) and node.id == name}
    for call in _calls(seen):
        found = named_sampler(call, seen.names)
        if found and (named := found.named_here):
            uses -= {named.target, found.made.args[0]}
    return not uses


def _imports_of_torch(seen: View) -> Iterator[Edit]:
    """Import from torch what came from the runtime under torch's names."""
    wanted: dict[str, list[str]] = {}
    for node in ast.walk(seen.original):
        if isinstance(node, ast.ImportFrom) and node.module == RUNTIME and not node.level:
            for alias in node.names:
                if alias.name in TORCH:
                    wanted.setdefault(TORCH[alias.name], []).append(shown(alias))
    for module, names in wanted.items():
        found = _import_of(seen.original, module)
        if found is None:
            yield from insertions(seen.original, [import_from(module, names)])
        else:
            there = [shown(alias) for alias in found.names]
            ordered = there == sorted(there)
            merged = sorted({*there, *names}) if ordered else [*there, *(name for name in names if name not in there)]
            yield RewriteImport(found, import_from(module, merged), "take the DataLoader of torch")


def _import_of(tree: ast.Module, module: str) -> ast.ImportFrom | None:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == module and not node.level and node.names[0].name != "*":
            return node
    return None


def _runtime_uses(seen: View) -> Iterator[ast.expr]:
    for node in ast.walk(seen.original):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            name = runtime_name(node, seen.names)
            if name and name not in TORCH:
                yield node


def _stays(node: ast.expr, seen: View) -> Finding:
    message = f"{runtime_name(node, seen.names)} of {RUNTIME} is used in a way of its own here"
    return Finding("DDP101", "refused", node.lineno, message, "take it out first")


def unused_names(tree: ast.Module) -> Iterator[tuple[str, Edit]]:
    """Take out of the imports of ddpify_runtime the ranks that nothing asks for any more."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == RUNTIME and not node.level:
            kept = [shown(each) for each in node.names if (each.asname or each.name) in used or each.name not in _ALONE]
            if len(kept) < len(node.names):
                yield "DDP101", RewriteImport(node, import_from(RUNTIME, sorted(kept))) if kept else Delete(node, "")
