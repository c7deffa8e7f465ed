"""What functions of libraries make of samples, and of what is alike on all ranks."""

from __future__ import annotations

from ddpify_codemods.facts.flow.library_results import local_rows, local_rows_or_sizes
from ddpify_codemods.facts.flow.values import Value

from tests.codemods.facts.flow.followed import TRAINING, reasons


def test_values_of_a_ranks_rows() -> None:
    assert local_rows([Value("rows"), Value("same")]) and not local_rows([Value("sum")])
    assert local_rows_or_sizes([Value("rows"), Value("size")])


def test_an_array_that_is_the_same_on_all_ranks_is_so_as_a_tensor() -> None:
    source = "import numpy as np\n" + TRAINING.replace(
        "F.cross_entropy(model(x), y)", "F.cross_entropy(model(x) * torch.from_numpy(np.ones(3)).type_as(x).mean(), y)"
    )
    assert reasons(source) == []
