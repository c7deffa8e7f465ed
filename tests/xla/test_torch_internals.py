"""The private names of torch on the oldest torch that we claim, which is that of torch_xla."""

from __future__ import annotations

from tests.runtime.test_torch_internals import checked
from tests.xla.runs import XLA_PYTHON


def test_every_name_does_what_it_is_used_for() -> None:
    version, failed = checked(XLA_PYTHON)
    assert version == "2.9.0"
    assert not failed, "\n".join(failed.values())
