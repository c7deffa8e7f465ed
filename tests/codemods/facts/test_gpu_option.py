"""The option of a command line without which a script stays on the CPU."""

import pytest
from ddpify_codemods.facts.gpu_option import gpu_option


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ('"--cuda", action="store_true", help="use CUDA"', "--cuda"),
        ('"-g", "--use-gpu", action="store_true"', "--use-gpu"),
        ('"--no-cuda", action="store_true"', ""),
        ('"--cuda", action="store_false"', ""),
        ('"--cuda", action="store_true", default=True', ""),
        ('"--gpu", type=int', ""),
        ('"--cuda-deterministic", action="store_true"', ""),
    ],
)
def test_what_asks_for_gpus(arguments: str, option: str) -> None:
    assert gpu_option(f"import argparse\np = argparse.ArgumentParser()\np.add_argument({arguments})\n") == option
