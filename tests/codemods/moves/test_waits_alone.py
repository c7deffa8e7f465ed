"""Where rank 0 alone would wait for others in a conversion to the plain style, which is refused."""

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import plain, refusals, training

NAMED = "def named(loss):\n    return f'{loss:.2f}.pt'\n"
STEP = "optimizer.step()\n        "
WAITS = "and would wait there for the others"


@pytest.mark.parametrize(
    "use",
    [
        "torch.save(model.state_dict(), named(loss.item()))",
        "torch.save(model.state_dict(), f=outer(loss.item()))",
        "with open(named(loss.item()), 'w') as file:\n            file.write('a')",
        "open(named(loss.item()), 'w').close()",
        "Path(named(loss.item())).open('w').close()",
    ],
)
def test_a_function_that_brings_numbers_together_is_for_all_ranks(use: str) -> None:
    outer = "def outer(loss):\n    return 'a' + named(loss)\n"
    head = "from pathlib import Path\n" + NAMED + outer
    assert any(WAITS in each for each in refusals(plain(head + training(step=STEP + use))))
    assert not refusals(plain(head + training(step=STEP + "print(named(loss.item()))")))


def test_a_function_of_another_file_is_for_all_ranks() -> None:
    use = "torch.save(model.state_dict(), named(loss.item()))"
    files = {Path("train.py"): "from names import named\n" + training(step=STEP + use), Path("names.py"): NAMED}
    results = convert(files, "cpu", style="plain")
    assert any(WAITS in each for each in refusals(results[Path("train.py")]))
    assert all(result.code == files[path] for path, result in results.items())


def test_what_all_ranks_have_computed_before_is_no_wait() -> None:
    head = "import numpy as np\n" + NAMED
    result = plain(head + training(step=STEP + "np.save(named(loss.item()), [1])"))
    assert not refusals(result)
    assert (
        "value = named(loss.item())\n        if dist.get_rank() == 0:\n            np.save(value, [1])" in result.code
    )
