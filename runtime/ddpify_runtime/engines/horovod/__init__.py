"""Horovod's collectives: importing it readies Horovod for what the rest of the runtime asks of an engine."""

from __future__ import annotations

from .engine import Engine

ENGINE = Engine()
