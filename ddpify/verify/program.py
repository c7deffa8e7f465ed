"""The script to verify, and what its conversion changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ddpify_codemods import LOCAL_BATCH_NORM

from ddpify.command import readers
from ddpify.config import read_settings
from ddpify.conversion import convert_program
from ddpify.files import BadInput
from ddpify.inputs import gather
from ddpify.outcome import Outcome, reports
from ddpify.programs import program
from ddpify.report import Report
from ddpify.report import text as as_text

PICTURES = "DDP627"  # the rule that says which pictures are of rank 0's samples


@dataclass(frozen=True)
class Subject:
    """files: the script and its local modules, real paths. text: all their code. changed: their converted bytes.

    local_batch_norm: BatchNorm was to take the statistics of each rank's rows; here it takes those of the batch.
    pictures: whether it draws pictures of rank 0's samples.
    """

    files: tuple[Path, ...]
    text: str
    changed: Mapping[Path, bytes] = field(default_factory=dict)
    local_batch_norm: bool = False
    pictures: bool = False


def reached(script: Path) -> Subject:
    """Return a script and the local modules that it reaches, as they are."""
    load, imports, added = readers(gather([str(script)]))
    files = program(script, imports, added).files
    return Subject(files, "\n".join(load(path).text for path in files))


def converted(
    name: str, target: str, style: str = "exact", optimizer_sharding: bool = False, fully_sharded: bool = False
) -> Subject:
    """Return a script with its conversion; one that is converted already as it is.

    Raises:
        BadInput: it is refused, or there is nothing in it to convert.
    """
    inputs = gather([name])
    if inputs.problems:
        problem = inputs.problems[0]
        raise BadInput(problem.path, problem.message, problem.remedy, problem.line)
    load, imports, added = readers(inputs)
    reach = program(inputs.named[0], imports, added)
    sources = tuple(load(path) for path in reach.files)
    # What is distributed by hand, or in the plain style, is not taken back: it is compared with --against.
    options: dict[str, Any] = {"style": style if style == "plain" else "", "optimizer_sharding": optimizer_sharding}
    options["fully_sharded"] = fully_sharded
    converted = convert_program(sources, target, roots=reach.roots, batch_norm="batch", **options)
    outcome = Outcome(sources, converted, silent=False)
    if any(change.rule.startswith("DDP22") for result in converted.results.values() for change in result.changes):
        what = "is distributed by hand already, and has no form for one process to be compared with"
        raise BadInput(name, what, "give its one-process form, and this one with --against")
    found = Subject(tuple(source.path for source in sources), "\n".join(source.text for source in sources))
    local = LOCAL_BATCH_NORM in found.text or read_settings(inputs.named[0].parent).batch_norm == "local"
    if outcome.failed:
        done, refused = as_text(Report(tuple(reports(outcome, "converted", lambda _: "", Path())), target))
        raise BadInput(
            name, f"cannot be converted: {[*refused, *done][0]}", "ddpify verify --against compares one that you made"
        )
    if not outcome.codes and "ddpify_runtime" not in found.text:
        reason = next(
            (result.reason for result in outcome.converted.results.values() if result.reason), "nothing to do"
        )
        raise BadInput(name, f"has nothing to convert ({reason})", "give the script that holds the training loop")
    changed = {source.path: source.encode(code) for source, code in outcome.codes.items()}
    pictures = any(each.rule == PICTURES for result in converted.results.values() for each in result.findings)
    return Subject(found.files, found.text, changed, local, pictures)
