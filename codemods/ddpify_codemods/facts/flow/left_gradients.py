"""Backward passes that leave gradients in a model for nothing: the critic's, in the generator that made its images.

DistributedDataParallel counts one backward pass for each forward (L10). Where what one of two leaves is set to zero
before any step, that one need not go through the model: `loss.backward(inputs=list(critic.parameters()))`.
"""

from __future__ import annotations

import ast

from .frames import FlowFacts


def left_for_nothing(found: FlowFacts) -> set[tuple[ast.Call, ast.AST]]:
    """The backward passes, and models, by whose gradients nothing is stepped while those of another pass through the
    same forward are."""
    return {
        (backward, model)
        for backward, model in found.reached.keys() - found.stepped
        if not any(word.arg == "inputs" for word in backward.keywords)
        and any(pair[0] is backward for pair in found.stepped)
        and any(
            other is not backward and found.reached[backward, model] & found.reached.get((other, model), set())
            for other, same in found.not_averaged.keys() & found.stepped
            if same is model
        )
    }
