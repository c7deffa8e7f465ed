from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from .snippet import check_noop, check_transformed, findings, imports_of


@pytest.mark.parametrize(
    ("lines", "imports"),
    [
        ("def run(loader: DataLoader) -> None:\n    pass", "from torch.utils.data import DataLoader\n"),
        ("known = isinstance(3, DataLoader)", "from torch.utils.data import DataLoader\n"),
        ("loader = DataLoader([])", "from torch_geometric.loader import DataLoader\n"),
        ("loader = torch.utils.data.BatchSampler([], 3, False)", ""),
    ],
)
def test_nothing_to_load(lines: str, imports: str) -> None:
    check_noop(lines, imports=imports)
    assert imports in imports_of(lines, imports=imports)


@pytest.mark.parametrize("base", ["DataLoader", "DataLoader[int]", "torch.utils.data.DataLoader"])
def test_a_derived_class_is_derived_from_the_runtime_s(base: str) -> None:
    lines = "class Mine({}):\n    def __iter__(self):\n        return iter(super().__iter__())\nloader = Mine([])"
    imports = "" if base.startswith("torch") else "from torch.utils.data import DataLoader\n"
    check_transformed(lines.format(base), lines.format(base.removeprefix("torch.utils.data.")), imports=imports)
    assert "    DataLoader,\n" in imports_of(lines.format(base), imports=imports)
    assert not findings(lines.format(base), imports=imports)


@pytest.mark.parametrize("line", ["yield from self._get_iterator()", "return map(load, self._index_sampler)"])
def test_a_derived_class_that_touches_what_is_inside_stays(line: str) -> None:
    imports = "from torch.utils.data import DataLoader\n"
    lines = f"class Mine(DataLoader):\n    def __iter__(self):\n        {line}\nloader = Mine([])"
    check_noop(lines, imports=imports)
    assert imports in imports_of(lines, imports=imports)
    assert [(each.rule, each.severity) for each in findings(lines, imports=imports)] == [("DDP109", "note")]


_GUARD = "if os.environ.get('RANK', '0') == '0':\n    "


@pytest.mark.parametrize(
    "lines",
    [
        f"writer = SummaryWriter()\n{_GUARD}writer.add_images('x', x)",
        f"{_GUARD}viz = Visdom()\nif viz is not None:\n    viz.images(x)",
    ],
)
def test_where_the_script_shows_whole_batches_on_rank_zero(lines: str) -> None:
    imports = "import os\nfrom torch.utils.data import DataLoader\n"
    lines = f"loader = DataLoader([])\n{lines}"
    assert "DDP109" in [each.rule for each in findings(lines, imports=imports)]
    assert "from torch.utils.data import DataLoader\n" in imports_of(lines, imports=imports)


@pytest.mark.parametrize(
    "lines",
    [
        "writer = SummaryWriter()\nwriter.add_images('x', x)",
        "class Log:\n    def __init__(self):\n        self.writer = SummaryWriter()\n\n"
        "    def images(self, x):\n        self.writer.add_image('x', x)\n\nlog = Log()\nlog.images(x)",
        "def show(writer, x):\n    writer.add_graph(model, x)",
    ],
)
def test_all_ranks_give_their_rows_to_a_writer_of_rank_zero(lines: str) -> None:
    imports = "from torch.utils.data import DataLoader\nfrom torch.utils.tensorboard import SummaryWriter\n"
    lines = f"loader = DataLoader([])\n{lines}"
    assert not findings(lines, imports=imports)
    assert "    DataLoader,\n" in imports_of(lines, imports=imports)


@pytest.mark.parametrize("line", ["rng = np.random.default_rng(0)", "rng = random.Random(3)"])
def test_a_generator_is_watched_in_the_run(line: str) -> None:
    imports = "import random\nimport numpy as np\nfrom torch.utils.data import DataLoader\n"
    lines = f"loader = DataLoader([])\n{line}"
    assert "    DataLoader,\n" in imports_of(lines, imports=imports)


@pytest.mark.parametrize(
    ("imports", "above"),
    [
        ("from torch.utils.data import DataLoader\n", "    DataLoader,\n"),
        ("from torch.utils.data import DataLoader, Dataset\n", "from torch.utils.data import Dataset\n"),
        ("from torch.utils.data import DataLoader as DL\n", "from ddpify_runtime import DataLoader as DL\n"),
    ],
)
def test_the_import_moves(imports: str, above: str) -> None:
    lines = "loader = DL(*given)" if " DL" in imports else "loader = DataLoader(*given)"
    check_noop(lines, imports=imports)
    assert above in imports_of(lines, imports=imports)


@pytest.mark.parametrize(
    ("before", "imports"),
    [
        ("loader = torch.utils.data.DataLoader(*given)", ""),
        ("loader = data.DataLoader(*given)", "import torch.utils.data as data\n"),
        ("loader = data.DataLoader(*given)", "from torch.utils import data\n"),
        ("loader = DataLoader(*given)", "from torch.utils.data import *\n"),
    ],
)
def test_a_dotted_name_becomes_the_runtime_s(before: str, imports: str) -> None:
    check_transformed(before, "loader = DataLoader(*given)", imports=imports)
    assert "    DataLoader,\n" in imports_of(before, imports=imports)


def test_a_taken_name_gets_another() -> None:
    lines = "class DataLoader:\n    pass\nloader = torch.utils.data.DataLoader(*given)"
    check_transformed(lines, lines.replace("torch.utils.data.DataLoader", "ddpify_DataLoader"))


def test_an_import_that_nothing_uses_gives_its_name() -> None:
    source = (
        "import torch\nfrom torch.utils.data import DataLoader\nmodel = torch.nn.Linear(2, 1)\n"
        "loader = torch.utils.data.DataLoader(data, shuffle=True)\noptimizer = torch.optim.SGD(model.parameters())\n"
        "for x in loader:\n    model(x).mean().backward()\n    optimizer.step()\n"
    )
    code = convert({Path("train.py"): source}, "cpu")[Path("train.py")].code
    assert (
        "torch.utils.data" not in code
        and "loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=True))" in code
    )


FROM_TORCH = "from torch.utils.data import DataLoader\n"


@pytest.mark.parametrize(
    "line",
    [
        "loader = DataLoader(data, 8, True)",  # so that --target none can give back the very text
        "loader = DataLoader(data, *rest)",
        "loader = DataLoader(*given)",
        "loader = DataLoader(data, **options)",
        "loader = DataLoader(data, shuffle=False, **options)",
        "options = {'shuffle': True}\nloader = DataLoader(data, **options)",
        "options = {}\noptions['shuffle'] = True\nloader = DataLoader(data, **options)",
        "options = {'pin_memory': True}\nchange(options)\nloader = DataLoader(data, **options)",
        "def make(data, **options):\n    return DataLoader(data, **options)",
        "loader = DataLoader(data, batch_sampler=chosen)",
        "loader = DataLoader(data, batch_size=None)",
        "loader = DataLoader(data, None)",
        "loader = DataLoader(data, sampler=None, shuffle=True)",
        "loader = DataLoader(data, sampler=chosen, shuffle=chosen is None)",
        "make = partial(DataLoader, shuffle=True)",
        "loader = DataLoader(data := [1, 2])",
        "loader = DataLoader(shuffle=True, dataset=[1, 2])",  # no name yet where the sampler would stand
        "found = [x for x in DataLoader([1, 2])]",  # Python has no := there
        "class Data:\n    loaders = [DataLoader([n]) for n in (1, 2)]",
        "class Lines(torch.utils.data.IterableDataset):\n    pass\nloader = DataLoader(Lines())",
        "class Lines(torch.utils.data.IterableDataset):\n    pass\n"
        "class More(Lines):\n    pass\ndata = More()\nloader = DataLoader(data)",
    ],
)
def test_a_call_that_hides_its_order_stays(line: str) -> None:
    check_noop(line, imports=FROM_TORCH)
    assert "    DataLoader,\n" in imports_of(line, imports=FROM_TORCH)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("data, shuffle=True", "data, sampler=DistributedSampler(data, shuffle=True)"),
        ("data, 8, shuffle=True", "data, 8, sampler=DistributedSampler(data, shuffle=True)"),
        ("data", "data, sampler=DistributedSampler(data, shuffle=False)"),
        ("data, shuffle=False", "data, shuffle=False, sampler=DistributedSampler(data, shuffle=False)"),
        ("data, shuffle=not test", "data, sampler=DistributedSampler(data, shuffle=not test)"),
        ("data, shuffle=True, **options", "data, sampler=DistributedSampler(data, shuffle=True), **options"),
        ("sets['a'], shuffle=True", "train_set := sets['a'], sampler=DistributedSampler(train_set, shuffle=True)"),
        ("self.data, shuffle=True", "self.data, sampler=DistributedSampler(self.data, shuffle=True)"),
        ("dataset=data, shuffle=True", "dataset=data, sampler=DistributedSampler(data, shuffle=True)"),
        ("data, sampler=chosen", "data, sampler=DistributedSamplerWrapper(chosen)"),
        ("data, sampler=chosen, shuffle=False", "data, sampler=DistributedSamplerWrapper(chosen), shuffle=False"),
        ("make(), sampler=Weighted(w, 9)", "make(), sampler=DistributedSamplerWrapper(Weighted(w, 9))"),
        ("make(), shuffle=True", "train_set := make(), sampler=DistributedSampler(train_set, shuffle=True)"),
        ("data[:9], shuffle=True", "train_set := data[:9], sampler=DistributedSampler(train_set, shuffle=True)"),
        ("dataset=a or b", "dataset=(train_set := a or b), sampler=DistributedSampler(train_set, shuffle=False)"),
    ],
)
def test_the_sampler_is_named(call: str, named: str) -> None:
    check_transformed(f"train_loader = DataLoader({call})", f"train_loader = DataLoader({named})", imports=FROM_TORCH)


@pytest.mark.parametrize(
    "options", ["{'num_workers': 2, 'pin_memory': True} if gpu else {}", "dict(num_workers=2)", "{'drop_last': True}"]
)
def test_options_that_are_in_sight(options: str) -> None:
    lines = f"options = {options}\nloader = DataLoader(data, **options)"
    named = lines.replace("**", "sampler=DistributedSampler(data, shuffle=False), **")
    check_transformed(lines, named, imports=FROM_TORCH)


@pytest.mark.parametrize("made", ["{'a': data, 'b': data}", "[data, data]", "{n: data for n in 'ab'}"])
def test_an_entry_of_what_is_written_down_is_asked_twice(made: str) -> None:
    lines = f"sets = {made}\nloader = DataLoader(sets[n], shuffle=True)"
    check_transformed(
        lines, lines.replace("shuffle", "sampler=DistributedSampler(sets[n], shuffle") + ")", imports=FROM_TORCH
    )


def test_a_property_is_not_asked_twice() -> None:
    lines = """\
        class Data:
            @property
            def train(self):
                return torch.rand(8)
        loader = DataLoader(data.train, shuffle=True)
    """
    named = "dataset := data.train, sampler=DistributedSampler(dataset, shuffle=True)"
    check_transformed(lines, lines.replace("data.train, shuffle=True", named), imports=FROM_TORCH)


@pytest.mark.parametrize(
    ("loader", "taken", "name"),
    [
        ("trainloader", "", "trainset"),
        ("self.val_dl", "", "val_set"),
        ("train_loader", "train_set = 3\n", "dataset"),
        ("loader", "def dataset():\n    pass\n", "loader_dataset"),
        ("_", "", "dataset"),
    ],
)
def test_a_name_that_is_free(loader: str, taken: str, name: str) -> None:
    made = f"{name} := [1, 2], sampler=DistributedSampler({name}, shuffle=False)"
    before, after = f"{taken}{loader} = DataLoader([1, 2])", f"{taken}{loader} = DataLoader({made})"
    check_transformed(before, after, imports=FROM_TORCH)


def test_ignored_on_its_line() -> None:
    line = "loader = DataLoader([1, 2], shuffle=True)  # ddpify: ignore[DDP109]"
    check_noop(line, imports=FROM_TORCH)
