"""What a script of `benchmarks.scaling` calls: the CPU seconds of its process, at the start of each epoch."""

from __future__ import annotations

import json
import os
import resource

_seconds: list[float] = []


def epoch() -> None:
    """An epoch starts, or the last one has ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    _seconds.append(sum(each.ru_utime + each.ru_stime for each in used))
    with open(f"{os.environ['METER']}{os.environ.get('RANK', '0')}", "w") as file:
        json.dump(_seconds, file)
