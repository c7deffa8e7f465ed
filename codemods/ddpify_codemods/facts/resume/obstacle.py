"""Why a run could not go on."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..script import Script


@dataclass(frozen=True)
class Obstacle:
    """The file, the line, what is there, what to do instead."""

    script: Script
    line: int
    message: str
    remedy: str


class CannotResume(Exception):
    """Raised where the first obstacle is met."""

    def __init__(self, script: Script, node: ast.AST, message: str, remedy: str) -> None:
        self.obstacle = Obstacle(script, getattr(node, "lineno", 1), message, remedy)
