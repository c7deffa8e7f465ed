"""The rules: one file per concern, found by being here."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ..rule import Rule


def _found() -> tuple[Rule, ...]:
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__) if not module.ispkg)
    return tuple(sorted((module.RULE for module in modules), key=lambda rule: rule.id))


RULES: tuple[Rule, ...] = _found()
