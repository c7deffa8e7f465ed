"""Whether something that differs between processes becomes a seed."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.seeds import fixed_worker_seeds, makes_a_seed

from tests.codemods.checks import node_of, script_of

HEAD = "import os, random, time, torch\n"


@pytest.mark.parametrize(
    ("lines", "call", "answer"),
    [
        ("torch.manual_seed(int(time.time()))", "time.time()", True),
        ("seed = os.getpid()\nrandom.seed(seed)", "os.getpid()", True),
        ("start = time.time()\ntorch.manual_seed(3)", "time.time()", False),
    ],
)
def test_a_clock_or_a_process_id_as_a_seed(lines: str, call: str, answer: bool) -> None:
    script = script_of(HEAD + lines)
    assert makes_a_seed(script, node_of(script, call)) is answer


WORKER = "import numpy as np\nimport random, time, torch\nfrom torch.utils.data import DataLoader\n"
LOADER = "loader = DataLoader(data, num_workers=2, worker_init_fn={})\n"


@pytest.mark.parametrize(
    ("function", "fixed"),
    [
        ("lambda worker: np.random.seed(worker)", True),
        ("lambda worker: np.random.seed(args.seed + worker)", True),
        ("lambda worker: np.random.seed(torch.initial_seed() % 2**32)", False),
        ("lambda worker: set_seed(args.seed + worker)", True),
        ("lambda worker: set_seed(torch.initial_seed() % 2**32)", False),
        ("lambda worker: print(args.seed + worker)", False),
        ("lambda worker: np.random.seed(np.random.get_state()[1][0] + worker)", True),
        ("lambda worker: random.seed(worker + given.seed)", True),
        ("lambda worker: random.seed(worker + int(options['seed']))", True),
        ("lambda worker: random.seed(torch.utils.data.get_worker_info().id)", True),
        ("lambda worker: random.seed(torch.utils.data.get_worker_info().seed)", False),
        ("lambda worker: random.seed(time.time_ns() + worker)", False),
        ("init", True),
        ("init_by_torch", False),
        ("init_by_function", False),
        ("init_by_drawn_number", True),
        ("None", False),
    ],
)
def test_a_number_of_its_own_that_seeds_workers(function: str, fixed: bool) -> None:
    defined = "def init(worker):\n    seed = 42 + worker\n    random.seed(seed)\n"
    by_torch = "def init_by_torch(worker):\n    seed = torch.initial_seed() % 2**32\n    random.seed(seed)\n"
    by_torch += "def of_torch():\n    return torch.initial_seed()\n"
    by_torch += "def init_by_function(worker):\n    random.seed(of_torch() + worker)\n"
    by_torch += "drawn = random.randint(0, 9)\ndef init_by_drawn_number(worker):\n    random.seed(drawn + worker)\n"
    by_torch += "def set_seed(seed):\n    random.seed(seed)\n    np.random.seed(seed)\n"
    by_torch += "given = parser.parse_args()\noptions = yaml.safe_load(open('a'))\n"
    script = script_of(WORKER + defined + by_torch + "np.random.seed(3)\n" + LOADER.format(function))
    assert bool([*fixed_worker_seeds(script)]) is fixed
