"""Fields that a constructor takes by place, by name, or not at all."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, training

CLASSES = """\
import dataclasses
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import ClassVar


@dataclass
class Init:
    a: object
    scale: InitVar[object] = None

    def __post_init__(self, scale):
        self.b = scale


@dataclass
class OfClass:
    n: ClassVar[float] = 1.0
    b: object = None


@dataclass
class Never:
    n: object = field(init=False, default=1.0)
    b: object = None


@dataclass
class ByName:
    a: object = field(kw_only=True, default=1.0)
    b: object = None


@dataclass(kw_only=True)
class Base:
    a: object = 1.0


@dataclass
class Behind(Base):
    b: object = None
    _: KW_ONLY
    c: object = 1.0


model = nn.Linear(4, 3)
"""


@pytest.mark.parametrize(
    "made",
    [
        *("Init(1.0, out)", "Init(a=1.0, scale=out)", "Init(1.0, **{'scale': out})", "OfClass(out)", "Never(out)"),
        *("ByName(out)", "ByName(out, a=1.0)", "Behind(out)", "Behind(out, c=1.0)"),
    ],
)
def test_a_field_gets_what_the_constructor_takes_for_it(made: str) -> None:
    loss = f"out = model(x)\n        part = {made}.b\n        loss = part.pow(2).sum() + F.cross_entropy(out, y)"
    source = training("0.0").replace("loss = 0.0", loss.replace("{", "{{").replace("}", "}}").format())
    assert "differentiable_sum(part.pow(2).sum())" in plain(source.replace("model = nn.Linear(4, 3)\n", CLASSES)).code
