"""The rules of the plain style: what an expert writes by hand, with torch alone."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ...rule import Rule


def _found() -> tuple[Rule, ...]:
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return tuple(sorted((module.RULE for module in modules if hasattr(module, "RULE")), key=lambda rule: rule.id))


PLAIN_RULES: tuple[Rule, ...] = _found()
