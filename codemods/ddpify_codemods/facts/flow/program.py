"""Follows a whole program until it is known which loaders feed training, and which evaluations can be divided."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from ..drawing_samplers import drawing_sampler
from ..keyword_dictionaries import drops_last
from ..known_sampler import known_sampler
from ..loaders import can_be_repeated, is_false, new_name, says_no_sampler, seen
from ..meters import meters
from ..script import Script
from .after_loops import left_by
from .draws import apart_for_samples
from .frames import ByNext, FlowFacts, Joined, Lengths, Problem
from .idle import idle_optimizers
from .left_gradients import left_for_nothing
from .longest import learn_lengths
from .one_by_one import shuffles
from .options import options, shown_of
from .own_sizes import batch_sizes, own_sizes
from .separate import divided_by_none, is_replaced, separate
from .state import TooLarge
from .statements import Follower
from .told import of_means_and_sums
from .unequal import waits_apart
from .values import DRAWN, UNEVEN, Loader, root_of
from .whole_calls import given_whole

_READ_SAME = "it is of this rank's batches in one case, and the same on all ranks in another"
_ROUNDS = 12
_TOO_LARGE = "the program is too large to be followed"
_UNSETTLED = f"which batches are divided, and which calls are wrapped, is not settled after {_ROUNDS} rounds"
_DRAWN_OTHERWISE = "this loop does not train, and gets what the sampler of training draws, of which a rank has its part"
_DRAWN_TWICE = (
    "this loop does not train, and runs over the samples of training, some of which DistributedSampler draws twice"
)
_TAKEN_UNSEEN = (
    "an iterator over the loader of training is made here, which is kept or handed on, and no loop is seen that trains "
    "with what next() takes of it; `for x, y in loader:` is seen"
)


@dataclass(eq=False)
class Program:
    """The files of a program, the one that is started first, and how they are to be distributed.

    sync_batchnorm: whether the statistics of BatchNorm are those of all ranks. per_process: whether the batch size is
    that of each process. fully_sharded: whether a rank has a part of each parameter, so that all call the model
    equally often. joined_above: the statement at the top of the first file above which the process group is joined,
    since what it runs asks for that; None where it is joined below the imports.
    """

    scripts: tuple[Script, ...]
    sync_batchnorm: bool = False
    per_process: bool = False
    fully_sharded: bool = False
    joined_above: ast.stmt | None = None

    @cached_property
    def followed(self) -> Followed:
        """What is known of the program."""
        return follow(self.scripts, divides=not self.fully_sharded)

    def joining_above(self, statement: ast.stmt) -> Program:
        """The same program, as it is known, whose process group is joined above a statement."""
        program = replace(self, joined_above=statement)
        program.followed = self.followed
        return program


@dataclass(frozen=True)
class Followed:
    """What is known of a program.

    found: as of the last round. status: of each call of DataLoader, "training", "sharded" (each rank has every W-th
    sample), "batches" (every W-th batch) or "whole". problems: what is left. whole: why evaluations are not divided by
    samples, or at all. drawn: the libraries whose generators go apart. evaluated:
    where an evaluation takes a loader of training, or undivided what is divided elsewhere.
    """

    found: FlowFacts
    status: dict[Loader, str]
    problems: tuple[Problem, ...]
    whole: dict[Loader, Problem]
    drawn: frozenset[str] = frozenset()
    evaluated: dict[ast.expr, Script] = field(default_factory=dict)


@lru_cache(maxsize=4)  # for other targets: what a program does is the same for all of them
def follow(scripts: tuple[Script, ...], divides: bool = True) -> Followed:
    """Follow a program; the script that is started first. divides: whether evaluations may be.

    Where it goes by numbers that each rank would draw for its samples, and no noise of samples comes from that
    generator, ranks may draw alike, for the samples of all: a pool of earlier samples, as GANs have. Where only
    networks would drop numbers that are never trained, none are dropped. Optimizers that are made to load a checkpoint,
    and never take a step, are passed by.
    """
    found, evaluated = _follow(scripts, divides), frozenset[ast.AST]()
    if any(each.reason == _TOO_LARGE for each in found.problems):  # in any other way, too
        return found
    idle = idle_optimizers(found.found)
    if idle:
        found = _follow(scripts, divides, idle=idle)
    if apart_for_samples(scripts) != apart_for_samples(scripts, found.found.only_evaluated):
        again = _follow(scripts, divides, only_evaluated=found.found.only_evaluated, idle=idle)
        if again.found.only_evaluated >= found.found.only_evaluated:
            found, evaluated = again, found.found.only_evaluated
    alike = (found.drawn & {"random", "numpy"}) - apart_for_samples(scripts, evaluated)
    if not alike or not any(DRAWN in each.reason for each in found.problems):
        return found
    again = _follow(scripts, divides, alike, evaluated, idle)
    return found if again.problems else again


def _follow(
    scripts: tuple[Script, ...],
    divides: bool,
    alike: frozenset[str] = frozenset(),
    only_evaluated: frozenset[ast.AST] = frozenset(),
    idle: frozenset[ast.Call] = frozenset(),
) -> Followed:
    status: dict[Loader, str] = {}
    trained: set[ast.AST] = set()
    whole: dict[Loader, Problem] = {}
    loaders: dict[object, Loader] = {}
    drawn = apart_for_samples(scripts, only_evaluated)
    evaluated: dict[ast.expr, Script] = {}
    of_all: set[ast.expr] = set()
    indistinct: set[ast.Call] = set()
    found = FlowFacts()
    wrapped: set[ast.Call] = set()
    by_next = ByNext()
    sizes: dict[ast.expr, tuple[Loader, bool]] = {}
    joined, aside, lengths = Joined(), set[tuple[ast.Call, ast.AST]](), Lengths()
    told: set[ast.Call] = set()
    alone: set[ast.AST] | None = set() if divides else None  # a sharded model has to be called by all ranks
    for _ in range(_ROUNDS):
        drawn |= {"torch"} if drawn else set()  # by which those of others are seeded, on each rank otherwise
        before = dict(status), set(trained), set(drawn), set(wrapped), set(indistinct), dict(sizes)
        given = (loaders, drawn, wrapped, evaluated, of_all, by_next, sizes, joined, aside, lengths, told, alone, alike)
        earlier = found.problems
        found, large = _once(scripts, status, trained, *given, idle)
        if large is not None:
            return Followed(found, status, (large,), whole)
        modules = {root_of(module).made for module in found.trained}
        training = found.training
        trained |= modules
        wrapped = found.training_forwards
        for call in found.loaders:
            if call in training or (call.call in indistinct and call.source is None):
                status[call] = "training"
            elif call not in status:
                way = "batches" if call.source is not None and status[call.source] == "batches" else "sharded"
                status[call] = way if divides and _can_be_divided(call) else "whole"
            elif status[call] == "training":
                status[call] = "sharded" if divides else "whole"
        indistinct |= _indistinct(found, status)
        sizes = own_sizes(scripts, found, status)
        new = by_next.learn(found.by_next) or not found.told <= told or not found.alone <= (alone or set())
        told |= found.told
        alone = None if alone is None else alone | found.alone
        for node in found.by_next.iterated & evaluated.keys():
            del evaluated[node]  # type: ignore[arg-type]
        if (
            new
            or (status, trained, drawn, wrapped, indistinct, sizes) != before
            or _evaluates_training(found, status, evaluated)
            or learn_lengths(lengths, found, status)
        ):
            continue
        stuck = _whole(scripts, found, status, whole, evaluated)
        wanted = found.wanted - found.differentiated - of_all
        undivided = set() if stuck or wanted else divided_by_none(found, status)
        for loader in undivided:
            status[loader] = "whole"
            own = [whole[each] for each in status if each.source is loader and each in whole]
            whole |= {loader: own[0]} if own else {}
        if stuck or undivided:  # what was drawn in them for a rank's part is drawn alike
            drawn.clear()
            drawn |= apart_for_samples(scripts, only_evaluated)
        coupled = joined.learn(found)
        settled = not stuck and not wanted and not undivided and not coupled
        if settled and (mixed := of_means_and_sums(found) - told):
            told |= mixed
        elif settled:
            wanted = given_whole(found) - of_all
            left = left_for_nothing(found) - aside
            if not wanted and not left:
                break
            aside |= left
        of_all |= set() if stuck else wanted  # they are computed from the batches of all ranks
    else:  # what is wrong in each round may be the cause; the rest is of one of them alone
        lasting = [each for each in found.problems if each in earlier]
        unsettled = f"{_UNSETTLED}: mend what else is refused first" if lasting else _UNSETTLED
        found.problems = [*(lasting or found.problems), Problem(scripts[0], scripts[0].tree, unsettled)]
    found.aside = aside
    found.agreed = {call: there for call, there in found.agreed.items() if call in lengths.asked}
    of_others = {
        each for each in found.loaders.keys() - found.training if each.call in indistinct and each.source is None
    }
    found.problems += [problem for each, problem in found.hidden.items() if each in of_others]
    found.problems += [problem for each, problem in found.apart.items() if each in found.joined]
    found.problems += _brought_together_twice(found)
    found.problems += [*waits_apart(scripts, found), *_over_others(found)]
    found.problems += [next(iter(each.values())) for each in found.may_train.values() if len(each) > 1]
    found.read_same -= joined.parts().keys() - found.apart.keys() - found.apart_quietly
    problems = tuple(dict.fromkeys(found.problems))
    replaced = {node: there for node, there in evaluated.items() if is_replaced(node, found, status)}
    return Followed(found, status, problems, whole, frozenset(drawn), replaced)


def told_by_key(statuses: dict[Loader, str]) -> str:
    """What is true of the loaders of training, in `{phase: DataLoader(…) for phase in ["train", "val"]}`; "" for
    others."""
    loader = next(iter(statuses))
    made = loader.script.parents.get(loader.call)
    if not isinstance(made, ast.DictComp) or made.value is not loader.call or not isinstance(made.key, ast.Name):
        return ""
    keys = {each: each.variant[0] if each.variant else None for each in statuses}
    training = {key for each, key in keys.items() if statuses[each] == "training"}
    others = {key for each, key in keys.items() if statuses[each] != "training"}
    if len(training) != 1 or training & others or not all(isinstance(key, str) for key in training | others):
        return ""
    return f'{made.key.id} == "{training.pop()}"'


def shuffle_distinguishes(found: FlowFacts, call: ast.Call, statuses: dict[Loader, str]) -> bool:
    """Whether `shuffle` is true for those of a call's loaders that training runs over, and false for the others; or
    the key tells them apart that each has in a dict."""
    script = next(iter(statuses)).script
    shown = shown_of(script, call)
    if shown is None or shown.shuffle is None:
        return False
    named = shown.dataset in call.args and new_name(script, call)
    if not can_be_repeated(script, shown.dataset) and not named:
        return False
    answers = all(found.shuffles.get(each) == {status == "training"} for each, status in statuses.items())
    return answers or (isinstance(shown.shuffle, ast.Constant) and bool(told_by_key(statuses)))


def _indistinct(found: FlowFacts, status: dict[Loader, str]) -> set[ast.Call]:
    """The calls that make loaders of training and others, and do not say which: all get the sampler of training, and
    the loops that do not train another loader (DDP620)."""
    calls: dict[ast.Call, dict[Loader, str]] = {}
    for loader, each in status.items():
        if loader.source is None:
            calls.setdefault(loader.call, {})[loader] = each
    mixed = {call: each for call, each in calls.items() if len({*each.values()} & {"training"}) < len({*each.values()})}
    return {
        call
        for call, each in mixed.items()
        if "training" in each.values() and not shuffle_distinguishes(found, call, each)
    }


def _evaluates_training(found: FlowFacts, status: dict[Loader, str], evaluated: dict[ast.expr, Script]) -> bool:
    """Let evaluations take the samples of training by themselves, each once; whether there is another one of these."""
    known = len(evaluated)
    for script, loop, loader, sites in found.untrained:
        if drawing_sampler(loader.script, loader.call) is not None:
            found.problems.append(Problem(script, loop, _DRAWN_OTHERWISE))
            continue
        for site in sites:
            alone = site.node not in found.without_loaders
            if alone and all(status.get(each) == "training" and not trains for each, trains in found.sites[site.node]):
                evaluated[site.node] = site.script
                break
        else:
            is_loop = not isinstance(loop, ast.Call)
            found.problems.append(Problem(script, loop, _DRAWN_TWICE if is_loop else _TAKEN_UNSEEN))
    return len(evaluated) > known


def _can_be_divided(loader: Loader) -> bool:
    """Whether the call that makes an evaluation's loader says all that dividing it needs."""
    words = {word.arg for word in loader.call.keywords}
    if drops_last(loader.script, loader.call) is not False:  # of each rank's part
        return False
    if loader.source is not None:
        return True
    if options(loader.script, loader.call):
        return True
    own = words & {"sampler", "batch_sampler"} and known_sampler(loader.script, loader.call) is None
    if (own and not says_no_sampler(loader.call)) or len(loader.call.args) > 3:
        return False
    shown = shown_of(loader.script, loader.call)
    if shown is None:
        return False
    return can_be_repeated(loader.script, shown.dataset) or bool(new_name(loader.script, loader.call))


def _once(
    scripts: Sequence[Script],
    status: dict[Loader, str],
    trained: set[ast.AST],
    loaders: dict[object, Loader],
    drawn: set[str],
    wrapped: set[ast.Call],
    evaluated: dict[ast.expr, Script],
    of_all: set[ast.expr],
    by_next: ByNext,
    sizes: dict[ast.expr, tuple[Loader, bool]],
    joined: Joined,
    aside: set[tuple[ast.Call, ast.AST]],
    lengths: Lengths,
    told: set[ast.Call],
    alone: set[ast.AST] | None,
    alike: frozenset[str],
    idle: frozenset[ast.Call],
) -> tuple[FlowFacts, Problem | None]:
    given = (loaders, drawn, wrapped, evaluated, of_all, by_next, sizes, joined, aside, lengths, told, alone, alike)
    follower = Follower(scripts, status, trained, *given, idle)
    try:
        follower.run()
    except (TooLarge, RecursionError):
        return follower.found, Problem(scripts[0], scripts[0].tree, _TOO_LARGE)
    found = follower.found  # the number of a rank's batches, once it is brought together, is the same on all
    found.read_same -= {call for call, statuses in found.lengths_of.items() if statuses == {"batches"}}
    return found, None


def _whole(
    scripts: Sequence[Script],
    found: FlowFacts,
    status: dict[Loader, str],
    whole: dict[Loader, Problem],
    evaluated: dict[ast.expr, Script],
) -> bool:
    """Evaluate whole, on every rank, where a metric cannot be added up; whether any loader is affected."""
    changed, before = False, dict(status)
    separated: set[Loader] = set()
    problems = [*found.problems, *_of_both(found, status), *_not_deferred(scripts, found), *_padded(found, status)]
    problems += [*waits_apart(scripts, found), *_over_others(found)]
    for problem in problems:
        for loader in [each for each in status if each in problem.loaders]:
            if status[loader] in UNEVEN and loader not in separated:
                changed = True
                together = {each for each in _together(loader, found) if status.get(each) in UNEVEN}
                known = all(before[each] == "sharded" and _has_known_batches(each, before) for each in together)
                by_batches = known and not any(map(shuffles, together))
                new = {each for each in together if not by_batches and separate(each, found, evaluated)}
                separated |= together if new else set()
                by_batches |= known
                for other in [each for each in status if each in together and not new]:
                    status[other] = "batches" if by_batches else "whole"
                    if status[other] != before[other] and (before[other] == "batches" or other not in whole):
                        whole[other] = problem  # of why it is not divided by batches either
    for other in [each for each in status if each.source is not None and status[each.source] == "whole"]:
        status[other] = "whole"
    return changed


def _has_known_batches(loader: Loader, status: dict[Loader, str]) -> bool:
    """Whether the call that makes an evaluation's loader says which samples its batches are of, if it goes in order."""
    if loader.source is not None or any(each.call is loader.call and status[each] == "training" for each in status):
        return False
    shown = seen(loader.script, loader.call)
    sampler = known_sampler(loader.script, loader.call)
    sizes = batch_sizes(loader)
    named = len(loader.call.args) > 1 or any(word.arg == "batch_size" for word in loader.call.keywords)
    return (
        shown is not None
        and (is_false(shown.shuffle) or isinstance(shown.shuffle, ast.Constant))
        and (shown.sampler is None or (sampler is not None and not sampler.shuffles))
        and all(isinstance(each, ast.Constant) or can_be_repeated(loader.script, each) for each in sizes)
        and (named or all(word.arg for word in loader.call.keywords))
        and not isinstance(loader.script.scope(loader.call), ast.ClassDef)
    )


def _not_deferred(scripts: Sequence[Script], found: FlowFacts) -> Iterator[Problem]:
    """Where numbers of a rank's part of an evaluation are read that are those of no meter."""
    deferred = {node for meter in meters(scripts, found) for node in meter.reductions} if found.deferred else set()
    for node, problems in found.deferred.items():
        if node not in deferred:
            yield from problems


def _padded(found: FlowFacts, status: dict[Loader, str]) -> Iterator[Problem]:
    """Loaders that evaluate samples of training, of which other batches would be padded to other lengths."""
    for loader, each in status.items():
        if loader.source is not None and each == "sharded" and found.padded.get(loader.call):
            reason = "a rank's samples are padded to the longest of them alone"
            yield Problem(loader.script, loader.call, reason, frozenset({loader}))


def _of_both(found: FlowFacts, status: dict[Loader, str]) -> Iterator[Problem]:
    """Where what comes of every W-th batch is brought together in the same place as something else."""
    for script, node, _ in found.lengths:
        loaders = frozenset(loader for _, other, loader in found.lengths if other is node)
        if "batches" in (statuses := {status.get(each) for each in loaders}) and len(statuses) > 1:
            yield Problem(script, node, "the number of a rank's batches is not that of all", loaders)
    for loop, over in found.loops.items():
        by_batches = frozenset(each for each in over if status.get(each) == "batches")
        if by_batches and (name := left_by(found.scripts[loop], loop)):
            yield Problem(found.scripts[loop], loop, f"a rank that has no batch has no {name} after it", by_batches)
    for place, problems in found.by_batches.items():
        kinds = {each.kind == "mean" for each in found.reductions.get(place, ())}  # type: ignore[call-overload]
        kinds |= {each.kind == "mean" for each in found.after if (each.script, each.at, each.name) == place}
        if len(kinds) > 1:
            yield from problems
        elif place in found.read_same:
            yield from (replace(each, reason=_READ_SAME) for each in problems)


def _brought_together_twice(found: FlowFacts) -> Iterator[Problem]:
    """Sums that are brought together where they are computed with in one turn of a loop, and in another one later."""
    for node in found.kept_apart & found.reductions.keys():
        if any(each.kind != "mean" for each in found.reductions[node]):
            reason = f"`{ast.unparse(node)}` is a sum of this rank in one turn of a loop, and of all ranks in another"
            yield Problem(found.scripts[node], node, reason)


def _over_others(found: FlowFacts) -> list[Problem]:
    """Loops that add up numbers of this rank's batches in one case, and those of a list, which all ranks have, in
    another."""
    return [found.added_in[loop] for loop in found.added_in.keys() & found.over_others]


def _together(loader: Loader, found: FlowFacts) -> set[Loader]:
    """The loaders that the same loops run over, or that the same call makes."""
    group = {loader}
    made = {each for each in found.loaders if each.source is None}
    calls = [{each for each in made if each.call is call} for call in {each.call for each in made}]
    together = [*found.loops.values(), *calls]
    for _ in range(len(together) + 1):
        for loaders in together:
            if group & loaders:
                group |= loaders
    return group
