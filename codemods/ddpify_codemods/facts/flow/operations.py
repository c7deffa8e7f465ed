"""What operations of torch, numpy and Python make of values that depend on a rank's samples. What is not listed here is
unknown: what becomes of it can then not be said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .batches import alike, are_paired, cut_apart, in_a_row, in_front, of_batches
from .dimensions import (
    IMPLICIT,
    after_operation,
    at_least_after_operation,
    implicit,
    keeps_dimensions,
    of_dimensions,
    parts_of,
)
from .layout import (
    along,
    axis,
    differ,
    flattened,
    mirrored,
    over_samples,
    permuted,
    reduced,
    reshaped,
    squeezed,
    together,
    transposed,
    turned,
    unsqueezed,
)
from .operation_names import (
    ALONG,
    COUPLE,
    CUTS,
    EACH,
    INTO,
    KEEP_SHAPE,
    LAST,
    LAYOUTS,
    MIX_LAST,
    MIX_SECOND,
    NEW,
    OF_MATRICES,
    PAIRS,
    PARTS,
)
from .values import (
    ADDITIVE,
    AS_MANY,
    COUPLES,
    LOCAL_ROWS,
    OWN_SHAPE,
    OWN_SIZE,
    PICKED,
    SAME,
    SEVERAL,
    TAKEN,
    Items,
    Iteration,
    Kind,
    Value,
    entries,
    join,
    made_of,
    of,
)
from .views import front_of


def on_rows(name: str, value: Value, dimension: object, given: Sequence[Value], keywords: set[str]) -> Value | None:
    """What a method or function makes of something that holds each sample; None where that is not known.

    Args:
        name: the function's last name. value: the tensor. dimension: the one that is given, as a number or a tuple of
            them; None without. given: the other arguments. keywords: the names of those that have one.
    """
    name = in_place_of(name)
    if name in IMPLICIT and dimension is None and value.dimensions is not None and "dim" not in keywords:
        dimension = implicit(value.dimensions)
    elif name in LAST and dimension is None and value.dimensions and "dim" not in keywords:
        dimension = value.dimensions - 1
    found = _on_rows(name, value, dimension, given, keywords)
    if found is None:
        return None
    kept = (name in EACH and name not in _MORE_ROWS) or (name in ALONG and found.kind in LOCAL_ROWS)
    found = of_batches(found, alike([value, *given])) if kept else found
    if found.kind in ("rows_second", "rows_last", "rows_moved"):
        found = replace(found, front=front_of(name, value, given))
    keeps = not keywords.isdisjoint(("keepdim", "keepdims")) or any(each.constant is True for each in given)
    many = after_operation(name, value, dimension, given, keeps)
    if found.kind == "batch" and not found.dimensions and (parts := parts_of(name, value, dimension, keeps)):
        return replace(found, parts=parts)
    at_least = at_least_after_operation(name, value, dimension, given)
    found = replace(found, widened=True) if value.widened and keeps_dimensions(name) else found
    return of_dimensions(found, many if "end_dim" not in keywords else None, at_least)


def of_numpy(value: Value) -> Value:
    """What is made of arrays of numpy: arrays, and numbers of Python in the place of tensors of one."""
    if value.kind not in (*LOCAL_ROWS, *ADDITIVE):
        return value
    return replace(value, host=True, array=value.dimensions != 0)


def _on_rows(name: str, value: Value, dimension: object, given: Sequence[Value], keywords: set[str]) -> Value | None:
    others = [each for each in given if each.is_local]
    all_of = [value, *others]
    pairs = name in PAIRS and any(each.kind in LOCAL_ROWS for each in others)
    if pairs or mixes(name, value.kind, value.dimensions):
        return made_of("unknown", all_of, reason=COUPLES)
    if name == "where" and not given:  # the places of those that count, in a tuple
        return made_of("unknown", all_of, reason=TAKEN)
    if name in ("view", "reshape") and takes_several(value, _flat(given)):
        return made_of("unknown", all_of, reason=COUPLES)
    numbers = given[1:2] if name == "new_full" else given if name in EACH - _MORE_ROWS else []
    if any(each.kind in ("size", "inverse") for each in numbers):
        return made_of("unknown", all_of, reason=OWN_SIZE)
    if any(other.kind not in (*LOCAL_ROWS, "size", "shape") for other in others):
        return None
    rows = {each.kind for each in all_of if each.kind in LOCAL_ROWS}
    if name in NEW:
        sizes = [each for each in entries(given) if each.is_local]
        return of_batches(made_of("rows", [value, *sizes]), value.batches) if sizes else SAME
    if name in ("bmm", "baddbmm"):
        crossed = value.kind in ("rows_second", "rows_last") and bool(rows - {"rows_moved"}) and len(all_of) > 1
        return made_of("rows" if _lie_first(rows) else "unknown", all_of, reason=COUPLES if crossed else "")
    if name == "scaled_dot_product_attention" and value.dimensions == 2 and axis(value.kind) == 0:
        return made_of("unknown", all_of, reason=COUPLES)
    if name == "bincount" and "minlength" in keywords and not differ(rows):
        return made_of("sum", all_of)  # as long on each rank: how often each class occurs
    if name in COUPLE or differ(rows) or _of_matrix(name, value, dimension, given, keywords):
        return made_of("unknown", all_of, reason=COUPLES)
    kind = together(rows)
    if name in LAYOUTS:
        sizes = _flat(given)
        of_each = sizes if name in ("view", "reshape") else _flat(given[1:]) if name == "unflatten" else []
        if of_each and axis(kind) == 0 and (found_in_front := in_front(value, of_each)) is not None:
            return found_in_front
        if name in ("view", "reshape") and of_each and are_paired(value, of_each[0]):
            return made_of("unknown", all_of, reason=COUPLES)
        found = _laid_out(name, value, dimension, sizes)
        if found is None:
            return made_of("unknown", all_of, reason=OWN_SHAPE)
        if name in ("view", "reshape") and value.dimensions == 1 and puts_together(sizes):
            return made_of("unknown", all_of, reason=COUPLES)
        merges = name in ("view", "reshape", "flatten", "ravel") and not (sizes and sizes[0].kind == "size")
        merges |= bool(sizes and sizes[0].kind == "size" and value.batches and sizes[0].batches != value.batches)
        behind = axis(kind) == 0 and isinstance(dimension, int) and dimension >= 1
        merges = merges and not (name == "flatten" and behind)
        at_first = kind == "picked" and axis(found) == 0
        made = made_of("picked" if at_first else found, all_of) if found in LOCAL_ROWS else None
        return made and replace(made, merged=value.merged or merges, batches=() if merges else value.batches)
    over = over_samples(value.kind, dimension, value.dimensions)
    unsure = dimension == "unknown" or (over and axis(value.kind) in (-1, None) and dimension is not None)
    if name in ("sum", "nansum", "count_nonzero") and over and value.reason == SEVERAL:
        return made_of("unknown", all_of, reason=SEVERAL)
    if name in ("sum", "nansum", "count_nonzero") and over:
        return replace(made_of("sum", all_of), merged=unsure)
    if name in ("mean", "nanmean", "average") and over and "weights" not in keywords:
        made = made_of("unknown" if kind == "picked" else "mean", all_of, reason=PICKED if kind == "picked" else "")
        return replace(made, merged=unsure)
    if name == "layer_norm" and any(each.kind in ("shape", "size") for each in entries(given)):
        return made_of("unknown", all_of, reason=COUPLES)
    if name == "expand" and (placed := [at for at, each in enumerate(_flat(given)) if each.kind == "size"]):
        last = placed[0] == len(_flat(given)) - 1 >= 2
        return made_of(along(-1 if last else placed[0]), all_of) if len(placed) == 1 else made_of("unknown", all_of)
    if name == "expand" and axis(kind) == 0 and _is_put_in_front(value, _flat(given)):
        return made_of("rows_moved", all_of)
    if name in ("cosine_similarity", "glu") and dimension is not None and over:
        return made_of("unknown", all_of, reason=COUPLES)
    if name == "one_hot" and not given and "num_classes" not in keywords:
        return made_of("unknown", all_of, reason=AS_MANY)
    if name == "masked_select" or (name == "repeat_interleave" and others and axis(kind) == 0):
        return made_of("picked", all_of)  # not as many for each sample
    if name in EACH:
        made = made_of(value.kind if value.kind == "batch" else kind, all_of)
        return replace(made, part=value.part) if value.part else made
    if name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack"):
        return one_after_another(all_of, "unknown")
    if name == "normalize" and dimension is None:
        dimension, over = 1, over_samples(value.kind, 1, value.dimensions)
    if name in CUTS and dimension in (0, None) and axis(kind) == 0 and (parts := cut_apart(name, value, given)):
        return parts
    if name in (*_TAKE, *_GATHERS, *CUTS) and over:
        return made_of("unknown", all_of, reason=COUPLES)
    if name in ALONG and dimension is None and name in LAST:
        return None
    if name in ("max", "min") and dimension == "unknown" and any(each.kind in LOCAL_ROWS for each in others):
        return made_of(kind, all_of)  # of each two elements
    if name in ALONG and over and (dimension != "unknown" or name not in _MEAN_ELEMENTS):
        return made_of("unknown", all_of, reason=COUPLES)
    if name in ALONG and not over:
        dimensions = dimension if isinstance(dimension, tuple) else (dimension,)
        if value.dimensions:  # counted from the first one
            dimensions = tuple(each % value.dimensions if isinstance(each, int) else each for each in dimensions)
        left = kind if name in KEEP_SHAPE else reduced(kind, dimensions, "keepdim" in keywords)
        several = name in ("max", "min", "topk", "sort", "median", "mode", *_SEVERAL)
        return made_of("batch" if several and left == "rows" else left, all_of)
    if name in CUTS and isinstance(dimension, int):
        each = reduced(kind, (dimension,), keeps=False) if name == "unbind" else kind
        return of(Items("tuple", {}, made_of("rows" if each == "batch" else each, all_of)))
    if name == "pad" and value.dimensions and _pads_first(_flat(given), value.dimensions) and axis(kind) == 0:
        return made_of("unknown", all_of, reason=COUPLES)
    if name == "pad" and any(each.kind == "unknown" for each in entries(given)):  # to the longest sample, as a rule
        return made_of("unknown", [*all_of, *given], reason=COUPLES)
    if name == "tolist":
        return made_of("rows" if kind == "batch" else kind, all_of)
    if name in PARTS:
        return made_of("batch" if kind == "rows" else kind, all_of)
    if name in ("numel", "nelement", "__len__"):
        return made_of("size" if kind != "picked" else "sum", all_of, host=True)
    return made_of("rows", all_of) if name in (*_GATHERS, "index_select", "narrow") else None


_EXCHANGE = ("permute", "transpose", "swapaxes", "swapdims")
_SEVERAL = ("var_mean", "std_mean", "aminmax", "cummax", "cummin", "nanmedian", "kthvalue")

_MEAN_ELEMENTS = frozenset({"max", "min"})  # with a tensor in the place of a dimension
_MORE_ROWS = frozenset({"expand", "repeat_interleave", "view_as"})
_TAKE = ("select", "select_copy", "index_select", "narrow", "take_along_dim")
_GATHERS = ("gather", *(each + end for each in ("scatter", *INTO) for end in ("", "_")))


def one_after_another(parts: Sequence[Value], dimension: object = 0) -> Value:
    """Tensors that are put together along a dimension: their samples lie where they lay, and as many as there were."""
    kinds = {each.kind for each in parts if each.kind in LOCAL_ROWS}
    if not kinds:
        return made_of("rows", parts)
    if differ(kinds):
        return made_of("unknown", parts, reason=COUPLES)
    kind = together(kinds)
    each_has = {each.dimensions for each in parts if each.kind in LOCAL_ROWS}
    made = made_of("rows" if kind == "batch" else kind, parts)
    made = of_dimensions(made, each_has.pop() if len(each_has) == 1 else None)
    if axis(kind) == 0 and dimension in (0, None):
        return of_batches(made, in_a_row(parts) if len(parts) > 1 else ())
    return of_batches(made, alike(parts)) if dimension in (1, 2, 3) else made


def puts_together(sizes: Sequence[Value]) -> bool:
    """Whether sizes for a tensor of one number for each sample put neighbours into a row: `scores.view(-1, 2)`."""
    others = [each.constant for each in sizes[1:] if isinstance(each.constant, int)]
    return bool(sizes) and sizes[0].constant == -1 and any(each > 1 for each in others)


def takes_several(value: Value, sizes: Sequence[Value]) -> bool:
    """Whether new sizes put samples into a row with their neighbours: `h.view(len(h) // 2, -1)`, `h.t().view(-1, 8)`.

    A tensor that is merged has several rows of each sample, which belong together.
    """
    first = sizes[0] if sizes else SAME
    if axis(value.kind) == 0:
        parts = first.kind == "unknown" and first.couples and first.host
        return parts and not value.merged
    return value.kind == "rows_last" and first.constant == -1 and len(sizes) > 1 and sizes[-1].constant != 1


def repeated_along(value: Value, at_least: int, given: Sequence[Value]) -> Value | None:
    """What `x.repeat(1, 3, 1)` makes: the same samples where they lay, if the tensor has as many dimensions as there
    are factors, and not along the dimension of the samples; None where that is not known.

    at_least: how many dimensions it has at least; it cannot have more than there are factors.
    """
    factors = _flat(given)
    if not factors or any(each.is_local or each.things for each in factors):
        return None
    along = axis(value.kind)
    if len(factors) not in (value.dimensions, at_least) or along is None or along >= len(factors):
        return None
    if factors[along].constant != 1:
        return None
    return of_dimensions(made_of("rows" if value.kind == "batch" else value.kind, [value]), len(factors))


def mixes(name: str, kind: Kind, dimensions: int | None = None) -> bool:
    """Whether an operation, or a module, of torch mixes what lies along the dimension of the samples, in a tensor of so
    many dimensions, where that is known."""
    name = name.lower()
    pools = next((each for each in (2, 3) if f"pool{each}d" in name), 0)  # the last ones
    pads = next((each for each in (1, 2, 3) if f"pad{each}d" in name), 0)
    place = axis(kind)
    if pools and place == 1 and (dimensions or 3) - pools <= 1:
        return True
    if pads and place in (0, 1) and (dimensions or 3 + place) - pads <= place:
        return True
    last = axis(kind) == -1 and any(each in name for each in MIX_LAST)
    return last or (axis(kind) == 1 and any(each in name for each in MIX_SECOND))


def _of_matrix(name: str, value: Value, dimension: object, given: Sequence[Value], keywords: set[str]) -> bool:
    """Whether an operation makes something of all rows of a matrix that has a row, or column, for each sample."""
    if name == "diagonal":  # of the first two dimensions, where it is told no others
        return not {"dim1", "dim2"} & keywords and not any(each.constant for each in given[1:3])
    said = isinstance(dimension, int | tuple) and not keywords.isdisjoint(("dim", "dims"))
    along = said and over_samples(value.kind, dimension, value.dimensions)
    return name in OF_MATRICES and (along if said else value.dimensions == 2)


def _pads_first(sizes: Sequence[Value], dimensions: int) -> bool:
    """Whether something is put before or behind the first of so many dimensions; numbers begin with the last one."""
    return any(each.constant != 0 for each in sizes[2 * dimensions - 2 : 2 * dimensions])


def _is_put_in_front(value: Value, sizes: Sequence[Value]) -> bool:
    """Whether new sizes begin with a number that is written down, which samples have not: `h.expand(2, -1, -1)`; or are
    those of a tensor that has not its samples along the first dimension, or has more: `h.expand(x.size())`."""
    first = sizes[0].constant if sizes else None
    if sizes and sizes[0].kind == "shape":
        known, others = value.dimensions, sizes[0].dimensions
        return first != 0 or (known is not None and others is not None and known != others)
    return isinstance(first, int) and first != -1


def in_place_of(name: str) -> str:
    """The operation that a method does in place: "cumsum" of "cumsum_"."""
    base = name.removesuffix("_")
    return base if base in {*ALONG, *LAYOUTS, *OF_MATRICES, *COUPLE} else name


def _lie_first(kinds: set[Kind]) -> bool:
    """Whether the samples lie along the first dimension."""
    return all(axis(kind) == 0 for kind in kinds)


def _flat(values: Sequence[Value]) -> list[Value]:
    """The values, or those in the tuple or list that is the first of them."""
    for thing in values[0].only(Items) if values else ():
        assert isinstance(thing, Items)
        return thing.all()
    return list(values)


def _laid_out(name: str, value: Value, dimension: object, given: Sequence[Value]) -> Kind | None:
    """Along which dimension the samples lie in a tensor that is laid out anew; None where that is not for ranks."""
    kind = value.kind
    numbers = [each.constant if isinstance(each.constant, int) else None for each in given]
    if value.dimensions and name in _EXCHANGE:  # counted from the last one
        numbers = [each and each % value.dimensions for each in numbers]
    at = dimension if isinstance(dimension, int) else None
    if name in ("view", "reshape"):
        if kind in ("rows_second", "rows_last") and len(given) == 1 and given[0].constant == -1:
            return "rows"
        return reshaped(kind, given)
    if name == "unsqueeze":
        return unsqueezed(kind, at)
    if name == "squeeze":
        return squeezed(kind, at)
    if name in ("t", "T"):
        return turned(kind)
    if name == "adjoint":
        return mirrored("mT", value)
    if name in _EXCHANGE and axis(kind) is not None and None in numbers:
        return "unknown"  # what is computed along a dimension afterwards may run along the samples
    if name == "permute":
        return permuted(kind, numbers)
    if name in ("movedim", "moveaxis") and sorted(each for each in numbers if each is not None) == [0, 1]:
        return transposed(kind, 0, 1)
    if (
        name in ("movedim", "moveaxis")
        and axis(kind) == 0
        and all((each is not None and each > 0) or each == -1 for each in numbers)
    ):
        return kind
    if name in _EXCHANGE:
        first, second = numbers[:2] if len(numbers) > 1 else (None, None)
        return transposed(kind, first, second, value.dimensions)
    if name in ("flatten", "ravel"):
        return flattened(kind, numbers[0] if numbers else 0)
    if name == "unflatten" and at == 0 and axis(kind) == 0:
        sizes = _flat(given[1:])
        cuts = bool(sizes) and sizes[0].constant == -1 and not value.merged  # into groups of samples
        return reshaped(kind, sizes) if not cuts else None
    return kind if axis(kind) == 0 and name == "unflatten" and at else "rows_moved"


def of_sizes(given: Sequence[Value]) -> Value | None:
    """A new tensor of some sizes, or of those in a tuple; None where they are not those of a rank's samples."""
    sizes = _flat(given)
    local = [value for value in entries(given) if value.is_local]
    places = [place for place, value in enumerate(sizes) if value.is_local]
    if not local or not all(value.kind in ("size", "shape") for value in local) or not places:
        return None
    if len(places) > 1:  # something for each two samples
        return made_of("unknown", local, reason=COUPLES)
    size = sizes[places[0]]
    of_shape = isinstance(size.constant, int) and size.kind == "shape" and len(sizes) == 1  # that of another tensor
    at = size.constant if of_shape and isinstance(size.constant, int) else places[0]
    made = of_batches(made_of(along(at), local), size.batches)
    return replace(made, kind="picked", reason="") if any(value.reason == PICKED for value in local) else made


def for_each_sample(given: Sequence[Value]) -> Value | None:
    """A tensor of sizes of which one is the number of a rank's samples; None for other arguments."""
    sizes = [value for value in entries(given) if value.is_local]
    if not all(each.kind in ("size", "shape") for each in sizes):
        return None
    if any(each.reason == PICKED for each in sizes):
        return replace(made_of("picked", sizes), reason="")
    if len(sizes) > 1:
        return made_of("unknown", sizes, reason=COUPLES)
    return of_batches(made_of("rows", sizes), sizes[0].batches)


def element(value: Value, key: object) -> Value:
    """What `value[key]` is; key is a constant, a slice, or None where it is not known."""
    found: Value | None = None
    for thing in value.only(Items):
        assert isinstance(thing, Items)
        one = thing.known.get(key) if isinstance(key, str | int) and key in thing.known else None
        if one is None and thing.default is not None and isinstance(key, str | int) and thing.rest is None:
            one = thing.default
        if one is None:
            several = thing.all()
            one = several[0] if several else SAME
            for other in several[1:]:
                one = join(one, other)
            if isinstance(key, slice):
                one = of(replace(thing, in_order=False) if thing.extended else thing)
            elif thing.extended and one.kind in LOCAL_ROWS:
                one = made_of("unknown", [one], reason=TAKEN)
        found = one if found is None else join(found, one)
    return found if found is not None else SAME


def runs_over_samples(over: Value) -> bool:
    """Whether a loop runs over the samples of a batch, also by zip() or enumerate(). A batch may be several tensors."""
    if over.kind in LOCAL_ROWS - {"batch"} or (over.kind == "batch" and over.dimensions):
        return axis(over.kind) == 0
    inner = (each for thing in over.only(Iteration) if isinstance(thing, Iteration) for each in thing.inner)
    return any(runs_over_samples(each) for each in inner)


def values_of(over: Value) -> Value | None:
    """What `losses.values()` gives, as a list; None for others."""
    (thing, *others) = over.things or (None,)
    inner = thing.inner if isinstance(thing, Iteration) and thing.how == "entries" and not others else ()
    found = [each for value in inner for each in value.things if isinstance(each, Items)]
    if len(inner) != 1 or len(inner[0].things) != 1 or not found or inner[0].is_local or found[0].shape != "dict":
        return None
    return of(Items("list", dict(enumerate(found[0].known.values())), found[0].rest))


def one_behind_the_other(left: Value, right: Value) -> Value | None:
    """`(loss,) + outputs`: a tuple of which each entry is known by its place, and what it is put before; None for
    others."""
    first = next((thing for thing in left.only(Items) if isinstance(thing, Items)), None)
    if first is None or len(left.things) > 1 or first.shape != "tuple" or first.rest is not None or left.is_local:
        return None
    known, several = dict(first.known), right.only(Items)
    if len(several) == 1 and len(right.things) == 1 and not right.is_local:
        (thing,) = several
        assert isinstance(thing, Items)
        if thing.shape != "tuple" or not all(isinstance(key, int) for key in thing.known):
            return None
        known |= {len(first.known) + key: value for key, value in thing.known.items() if isinstance(key, int)}
        return of(Items("tuple", known, thing.rest))
    if right.things or right.kind == "unknown":
        return None
    return of(Items("tuple", known, replace(right, zero=False)))
