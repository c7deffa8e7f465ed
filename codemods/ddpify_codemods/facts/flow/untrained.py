"""Networks that are only evaluated, beside those that are trained: a teacher, an encoder that was trained before."""

from __future__ import annotations

import ast

from ..reach import inside
from .dropout import calls_dropout
from .seen_layers import has_no_buffers, layers_of, parts_seen
from .state import State
from .values import Module, root_of

# What is known of their layers, their names say.
_NAMED = ("torch.", "torchvision.", "timm.", "segmentation_models_pytorch.")
_WITHOUT_STATISTICS = ("transformers.", "peft.", "diffusers.", "sentence_transformers.", "torchcrf.", "x_transformers.")


class Untrained(State):
    """What is not trained, where all parts of what is trained are seen."""

    def calls_in_mode(self, root: Module) -> None:
        """A network is called, or a part of it."""
        if not root.evaluates:
            self.in_training_mode.add(root)

    def end_untrained(self) -> None:
        """Note whose code is that of networks which are never trained, and are called in evaluation alone."""
        roots = {root_of(each) for each in self.found.trained}
        layers = {root: layers_of(root, self.scripts, self.vague_containers) for root in roots}
        sent = {root.made for root, parts in layers.items() if parts is None or not has_no_buffers(parts, self.scripts)}
        self.found.without_buffers = {root.made for root in roots} - sent
        self.found.of_others = {part for root in roots for part in parts_seen(root) if _is_of_others(part)}
        if not roots or any(parts is None for parts in layers.values()):
            return
        trained = {part for parts in layers.values() for part in parts or ()}
        code: dict[ast.AST, bool] = {}
        for module in {*self.own_modules.values(), *self.modules.values(), *self.copies.values()}:
            root = root_of(module)
            apart = module not in trained and root not in trained and root.made not in self.trained
            quiet = root.evaluates and root not in self.in_training_mode
            written = module.cls.node if module.cls is not None else module.made
            code[written] = code.get(written, True) and apart and quiet
        made = {part.made for part in trained}  # a part of a teacher may be one of the student, too
        self.found.only_evaluated = frozenset(
            each
            for each, alone in code.items()
            if alone and not _drops_always(each) and made.isdisjoint(inside(frozenset({each})))
        )


def _is_of_others(part: Module) -> bool:
    """Whether a layer is made by a library whose layers are not known; `self.fc.in_features` is made by nothing."""
    made = part.cls is None and isinstance(part.made, ast.Call)
    return made and not part.name.startswith(_NAMED + _WITHOUT_STATISTICS)


def _drops_always(code: ast.AST) -> bool:
    """Whether a class drops numbers in evaluation, too."""
    return isinstance(code, ast.ClassDef) and calls_dropout(code, evaluates=True)
