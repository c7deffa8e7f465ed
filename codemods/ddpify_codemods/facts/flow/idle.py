"""Optimizers that a program makes and never takes a step with: to load a checkpoint that holds one."""

from __future__ import annotations

import ast

from .frames import FlowFacts


def idle_optimizers(found: FlowFacts) -> frozenset[ast.Call]:
    """The optimizers that are never in use, and through whose models no backward pass goes; none where that is true of
    all."""
    trained = {made for call in found.training_forwards for made in found.called_models.get(call, ())}
    models: dict[ast.Call, set[ast.AST]] = {}
    for made, calls in found.optimizers_of.items():
        for call in calls:
            models.setdefault(call, set()).add(made)
    idle = {call for call, of in models.items() if call not in found.in_use and trained.isdisjoint(of)}
    return frozenset(idle if idle < models.keys() else ())
