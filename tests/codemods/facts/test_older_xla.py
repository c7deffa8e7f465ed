"""What older versions of torch_xla called otherwise."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.older_xla import old_names

from tests.codemods.checks import script_of

HEAD = "import torch_xla.core.xla_model as xm\n"


@pytest.mark.parametrize(
    ("line", "code", "state"),
    [
        ("xm.mark_step()", "torch_xla.sync", "is deprecated"),
        ("x = xm.get_ordinal()", "xr.global_ordinal", "is gone"),
        ("xm.set_rng_state(3)", "torch_xla.manual_seed", "has a newer name"),
    ],
)
def test_each_old_name_has_a_new_one(line: str, code: str, state: str) -> None:
    (found,) = old_names(script_of(HEAD + line))
    assert (found.code, found.state, found.by_hand) == (code, state, "")


def test_names_of_today_are_left() -> None:
    assert not list(old_names(script_of(HEAD + "xm.optimizer_step(o)\nxm.save(x, 'f')")))


def test_the_runtime_goes_by_the_name_that_the_script_has_for_it() -> None:
    (found,) = old_names(script_of(HEAD + "import torch_xla.runtime as rt\nx = xm.xrt_world_size()"))
    assert (found.code, found.modules) == ("rt.world_size", ())


def test_a_kind_of_device_is_chosen_by_hand() -> None:
    (found,) = old_names(script_of(HEAD + "d = xm.xla_device(devkind='CPU')"))
    assert "PJRT_DEVICE" in found.by_hand
