"""Distances between recorded tensors: lists of traces, with None for an absent gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy


def same_trace(x: Any, y: Any) -> bool:
    """Return whether two traces are of the same bits."""
    if x is None or y is None:
        return x is y
    if x[2] or y[2]:  # samples may differ in size
        return bool(x[2] == y[2])
    return bool(x[0].dtype == y[0].dtype and x[0].tobytes() == y[0].tobytes())


def distance(ours: Sequence[Any], original: Sequence[Any]) -> float:
    """Return ||ours - original|| / ||original|| over all tensors; an absent gradient counts as zero."""
    difference = norm = 0.0
    for x, y in zip_longest(ours, original):
        if x is None and y is None:
            continue
        a, b, share = _pair(x, y)
        if a.shape != b.shape:
            return math.inf
        with numpy.errstate(invalid="ignore"):
            difference += float(numpy.sum(numpy.where(_equal(a, b), 0.0, a - b) ** 2)) / share
        if share < 1:
            difference += (x[1] - y[1]) ** 2 if x and y else 0.0
        norm += float(numpy.nansum(numpy.where(numpy.isinf(b), 0.0, b) ** 2)) / share
    if difference == 0:
        return 0.0
    return math.sqrt(difference / norm) if norm else math.inf


def _pair(x: Any, y: Any) -> tuple[Any, Any, float]:
    """Return the values of two traces in float64, zeros for an absent one, and the share of the tensor they are."""
    a, b = (None if trace is None else trace[0].astype(numpy.float64) for trace in (x, y))
    a, b = numpy.zeros_like(b) if a is None else a, numpy.zeros_like(a) if b is None else b
    known = y or x
    sampled = float(numpy.linalg.norm(known[0].astype(numpy.float64)))
    share = (sampled / known[1]) ** 2 if known[2] and known[1] and sampled else 1.0
    return a, b, share


def _equal(a: Any, b: Any) -> Any:
    return (a == b) | (numpy.isnan(a) & numpy.isnan(b))


def first_far(ours: Sequence[Any], original: Sequence[Any], tolerance: float) -> tuple[int, float]:
    """Return the first tensor that is further away than the tolerance, by itself: its index and its distance."""
    pairs = [(index, distance([x], [y])) for index, (x, y) in enumerate(zip_longest(ours, original))]
    far = [pair for pair in pairs if not pair[1] <= tolerance]
    return far[0] if far else (-1, math.nan)


def ratio(ours: Sequence[Any], original: Sequence[Any]) -> tuple[float, float]:
    """Return the number c for which ours = c * original fits best, and the relative size of what it leaves."""
    product = norm = square = 0.0
    for x, y in zip_longest(ours, original):
        if x is None and y is None:
            continue
        a, b, share = _pair(x, y)
        if a.shape != b.shape:
            return math.nan, math.inf
        product += float(numpy.sum(a * b)) / share
        norm += float(numpy.sum(b * b)) / share
        square += float(numpy.sum(a * a)) / share
    if not norm:
        return math.nan, math.inf
    factor = product / norm
    return factor, math.sqrt(max(square - factor * product, 0.0) / norm)
