"""DDP120: operations that torch_xla does not have."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.devices.xla_operations import RULE

from ..checks import assert_silent, findings_of

HEAD = "import torch\nfrom torch.nn.utils import rnn\n"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("x = rnn.pack_padded_sequence(x, lengths)", "packed sequences"),
        ("x = torch.nn.utils.rnn.pack_sequence(xs)", "packed sequences"),
        ("a = torch.sparse_coo_tensor(places, values)", "sparse tensors"),
        ("y = torch.sparse.mm(a, x)", "sparse tensors"),
        ("a = a.to_sparse()", "sparse tensors"),
    ],
)
def test_a_warning(source: str, what: str) -> None:
    [finding] = findings_of(RULE, HEAD + source, "xla")
    assert (finding.severity, finding.line, what in finding.message) == ("warning", 3, True)
    assert_silent(RULE, HEAD + source, "cpu")


def test_other_operations() -> None:
    assert_silent(RULE, HEAD + "x = rnn.pad_sequence(xs); y = a.to_dense()", "xla")
