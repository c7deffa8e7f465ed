"""Tensors that get the batch size as their first size: `x.view(batch_size, -1)`, with the samples of a rank in them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from .frames import Frame
from .layout import axis
from .own_sizes import means_same, sets, written_sizes
from .state import State
from .values import Value


class BatchLayouts(State):
    """What tensors are laid out by that have the samples of a batch in their first dimension."""

    def sizes_of_rows(self, node: ast.Call, owner: Value, sizes: list[Value], frame: Frame) -> list[Value]:
        """The sizes that `x.view(batch_size, …)` gives to one batch, with the number of its samples in front."""
        tensor = node.func.value if isinstance(node.func, ast.Attribute) else None
        one_batch = axis(owner.kind) == 0 and owner.kind != "picked" and len(owner.batches) == 1
        if not one_batch or owner.merged or owner.whole or not node.args or not _can_be_written(tensor, node.args):
            return sizes
        if not self.is_batch_size(node.args[0], sizes[0], owner, frame):
            return sizes
        self.found.batch_layouts[node] = frame.script
        return [replace(Value("size", owner.loaders, host=True), batches=owner.batches), *sizes[1:]]

    def is_batch_size(self, size: ast.expr, value: Value, owner: Value, frame: Frame) -> bool:
        """Whether a size is the batch size of the loader that a batch is of: the same variable, or the same number."""
        loader = owner.batches[0]
        if value.constant is not None:
            numbers = self.found.batch_numbers.get(loader, set())
            return isinstance(value.constant, int) and value.constant > 1 and numbers == {value.constant}
        for said, script in written_sizes(loader):
            if script is frame.script and means_same(script, size, said):
                return True
            if not isinstance(size, ast.Attribute) or not isinstance(said, ast.Attribute) or size.attr != said.attr:
                continue
            holder = self.value(size.value, frame).things
            fixed = not any(sets(each, size.attr) for each in self.scripts)
            if fixed and holder and holder == self.found.size_owners.get(loader):
                return True
        return False


def _can_be_written(tensor: ast.expr | None, sizes: Sequence[ast.expr]) -> bool:
    """Whether the number of samples has a short name: `x.size(0)`, or -1 where no other size is."""
    return isinstance(tensor, ast.Name) or not any(map(_may_be_the_rest, sizes[1:]))


def _may_be_the_rest(size: ast.expr) -> bool:
    """Whether a size may be -1, what is left for it."""
    return not (isinstance(size, ast.Constant) and isinstance(size.value, int) and size.value > 0)
