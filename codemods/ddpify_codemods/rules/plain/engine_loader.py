"""A training loader that the engine itself divides (ignite.distributed.auto_dataloader)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.known_sampler import KnownSampler
from ...facts.loaders import Seen
from ...plain_words import Words
from ...rule import ChangeArgument, Edit, Replace

_MESSAGE = "draw this rank's samples"
_OWN = "say the order: the engine has a sampler of its own"


def divided_by_engine(
    call: ast.Call, shown: Seen, sampler: KnownSampler | None, size: ast.expr, words: Words, per_process: bool
) -> Iterator[Edit]:
    """The edits that let the engine make a loader.

    Args: the call of DataLoader, what it says, its sampler, its batch size, the engine's words, and whether that batch
    size is meant for each process: the engine divides it. Its order has to be said, since Ignite shuffles where
    DataLoader would not.
    """
    order = str(sampler is not None and sampler.shuffles)
    if per_process:
        yield Replace(size, f"{{}} * {words.world_size}", "it is divided again", modules=words.imports)
    if size not in call.args:
        yield Replace(call.func, words.loader, _MESSAGE, modules=words.imports)
        if sampler is not None and shown.shuffle is not None:
            yield ChangeArgument(call, "", "", _OWN, "sampler")
            yield Replace(shown.shuffle, order, _OWN)
        elif sampler is not None:
            yield ChangeArgument(call, "shuffle", order, _OWN, "sampler")
        elif shown.shuffle is None:
            yield ChangeArgument(call, "shuffle", "False", "keep the order: the engine would shuffle")
        return
    kept = [word for word in call.keywords if word.arg != "sampler" or sampler is None]
    named = [f"{word.arg}={{}}" if word.arg else "**{}" for word in kept if word.arg != "shuffle" or sampler is None]
    ordered = [f"shuffle={order}"] if shown.shuffle is None or sampler is not None else []
    template = f"{words.loader}({', '.join(['{}', 'batch_size={}', *ordered, *named])})"
    parts = (*call.args, *(word.value for word in kept if word.arg != "shuffle" or sampler is None))
    yield Replace(call, template, _MESSAGE, modules=words.imports, parts=parts)
