"""DDP102: which modules become distributed, where, and how the line reads."""

from __future__ import annotations

from textwrap import dedent

import pytest
from ddpify_codemods.rules.exact.model import RULE

from ..checks import assert_silent, edits_of, findings_of, rewritten


@pytest.mark.parametrize(
    "source",
    [
        "model = Net()",
        "import torch\ntorch.optim.lr_scheduler.StepLR(optimizer, 1)",
        "import torch\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1)",
        "import torch\nx = torch.ones(1)\ntorch.optim.SGD([x])",
        "total = sum(p.numel() for p in model.parameters())",
        "from torch.optim import swa_utils\nema = swa_utils.AveragedModel(model.parameters())",
        "def f(params):\n    from torch.optim import SGD\n    return SGD(params)",
    ],
)
def test_nothing_is_trained_here(source: str) -> None:
    assert_silent(RULE, source)


def inserted(source: str, target: str = "cpu") -> list[str]:
    return [line.strip() for line in rewritten(RULE, source, target).splitlines() if _wraps(line)]


def _wraps(line: str) -> bool:
    return "DistributedDataParallel" in line or "replicate" in line


WRAPPED = "model = DistributedDataParallel(model)"


@pytest.mark.parametrize(
    "optimizer",
    [
        "torch.optim.SGD(model.parameters(), lr=1)",
        "torch.optim.SGD(params=model.parameters(), lr=1)",
        "optim.Adam(filter(lambda p: p.requires_grad, model.parameters()))",
        "optim.Adam([p for p in model.parameters() if p.requires_grad])",
        "optim.Adam([{'params': model.features.parameters()}, {'params': model.fc.parameters(), 'lr': 1}])",
        "getattr(optim, name)(model.parameters())",
        "optim.__dict__[name](model.parameters())",
        "RAdam(model.parameters())",
        "Noam(512, optim.Adam(model.parameters()))",
        "optim.SGD([model.weight, model.bias])",
        "optim.SGD(model.module.parameters())",
        "optim.SGD(model.layers[0].parameters())",
        "optim.SGD(groups(model))",
        "timm_optimizer(args, model)",
        "settings(); optimizer.parameters = model.parameters()",
    ],
)
def test_ways_to_hand_over_parameters(optimizer: str) -> None:
    source = f"""\
        import torch
        from torch import optim
        from other import RAdam, Noam, groups, timm_optimizer
        model = Net()
        optimizer = {optimizer}
        optimizer.zero_grad()
        model.train()
        model(x)
        """
    assert inserted(source) == [WRAPPED]


@pytest.mark.parametrize(
    "lines",
    [
        "params = list(model.parameters())",
        "params = []\nfor name, p in model.named_parameters():\n    if p.requires_grad:\n        params.append(p)",
        "params = []\nfor k, v in dict(model.named_parameters()).items():\n    params += [{'params': [v], 'lr': 1}]",
        "decay = {n: p for n, p in model.named_parameters()}\nparams = [{'params': decay.values()}]",
        "a, params = [], []\nfor n, p in model.named_parameters():\n    (a if p.ndim == 1 else params).append(p)",
        "half = (p for p in model.parameters())\nparams = [{'params': list(half)}]",
        "params = filter(None, model.parameters()) if x else model.parameters()",
    ],
)
def test_parameters_kept_in_variables(lines: str) -> None:
    source = f"from torch import optim\nmodel = Net()\n{lines}\noptimizer = optim.SGD(params, lr=0.1)\n"
    assert inserted(source) == [WRAPPED]


def test_averages_of_parameters_are_no_optimizers() -> None:
    source = "from torch_ema import Average\nema = Average(teacher.parameters(), 0.9)\nema.update()\n"
    assert_silent(RULE, source)


def test_the_arguments_are_those_of_the_target() -> None:
    source = "import torch\nmodel = Net()\ntorch.optim.SGD(model.parameters())\n"
    assert inserted(source, "cuda") == ["model = DistributedDataParallel(model, device_ids=[get_local_rank()])"]
    assert inserted(source, "xla") == ["model = DistributedDataParallel(model, gradient_as_bucket_view=True)"]


@pytest.mark.parametrize(
    ("base", "line"),
    [
        ("self.net", "self.net = DistributedDataParallel(self.net)"),
        ("self.net.features", "self.net.features = DistributedDataParallel(self.net.features)"),
        ("nets['G']", "nets['G'] = DistributedDataParallel(nets['G'])"),
        ("nets[0]", "replicate(nets[0])"),
        ("self", "replicate(self)"),
    ],
)
def test_bases_that_are_no_names(base: str, line: str) -> None:
    source = f"""\
        from torch import nn, optim
        class Net(nn.Module):
            def __init__(self):
                self.optimizer = optim.SGD({base}.parameters())
        """
    assert inserted(source) == [line]


def test_a_global_is_not_made_local() -> None:
    source = "from torch import optim\nmodel = Net()\ndef fit():\n    return optim.SGD(model.parameters())\n"
    assert inserted(source) == ["replicate(model)"]


def test_a_parameter_of_the_function_is() -> None:
    source = "from torch import optim\ndef fit(model):\n    return optim.SGD(model.parameters())\n"
    assert inserted(source) == [WRAPPED]


def test_models_in_a_list() -> None:
    source = "from torch import optim\nms = [A(), B()]\nopts = [optim.SGD(m.parameters()) for m in ms]\n"
    assert inserted(source) == ["ms = [DistributedDataParallel(m) for m in ms]"]


@pytest.mark.parametrize(
    ("optimizers", "line"),
    [
        ("[SGD(m.parameters()) for m in ms.values()]", "[SGD(DDP(m).parameters()) for m in ms.values()]"),
        ("{k: SGD(m.parameters()) for k, m in ms.items()}", "{k: SGD(DDP(m).parameters()) for k, m in ms.items()}"),
        ("{k: SGD(ms[k].parameters()) for k in ms}", "{k: SGD(DDP(ms[k]).parameters()) for k in ms}"),
        ("[SGD(m.net.parameters()) for m in ms if m]", "[SGD(DDP(m.net).parameters()) for m in ms if m]"),
        ("[SGD(get(n).parameters()) for n in ns]", "[SGD(DDP(get(n)).parameters()) for n in ns]"),
        ("[SGD(m.parameters()) for g in gs for m in g]", "[SGD(DDP(m).parameters()) for g in gs for m in g]"),
        ("SGD([p for m in ms for p in m.parameters()])", "SGD([p for m in ms for p in DDP(m).parameters()])"),
        ("SGD([{'params': m.parameters()} for m in ms])", "SGD([{'params': DDP(m).parameters()} for m in ms])"),
        ("SGD(chain(*map(lambda m: m.parameters(), ms)))", "SGD(chain(*map(lambda m: DDP(m).parameters(), ms)))"),
    ],
)
def test_models_that_only_a_comprehension_can_name(optimizers: str, line: str) -> None:
    source = f"from itertools import chain\nfrom torch.optim import SGD\no = {optimizers}\n"
    assert rewritten(RULE, source).splitlines()[-1] == f"o = {line.replace('DDP', 'DistributedDataParallel')}"


def test_an_iterator_of_models_is_not_used_up() -> None:
    source = "from torch.optim import SGD\npairs = zip('ab', ms)\nopts = {k: SGD(m.parameters()) for k, m in pairs}\n"
    assert rewritten(RULE, source).count("pairs") == 2


@pytest.mark.parametrize(
    ("pairs", "names"),
    [
        ("for m in (a, b)", "ab"),
        ("for i, m in enumerate([a, b])", "ab"),
        ("for k, m in zip('ab', (a, b))", "ab"),
    ],
)
def test_models_that_are_written_out(pairs: str, names: str) -> None:
    source = f"from torch.optim import SGD\nopts = [SGD(m.parameters()) {pairs}]\n"
    assert inserted(source) == [f"{name} = DistributedDataParallel({name})" for name in names]


def test_layers_of_a_module_that_is_called() -> None:
    source = "from torch.optim import SGD\no = [SGD(m.parameters()) for i, m in enumerate(net.layers)]\nnet(x)\n"
    assert inserted(source) == ["net = DistributedDataParallel(net)"]


def test_a_dict_of_models_that_is_handed_on() -> None:
    source = (
        "from torch.optim import SGD\nms = {'a': A()}\n\ndef fit(models):\n    pass\n\n"
        "o = SGD(ms['a'].parameters())\nfit(ms)\n"
    )
    assert inserted(source) == ["ms['a'] = DistributedDataParallel(ms['a'])"]


@pytest.mark.parametrize(("kind", "members"), [("ModuleList", "ms"), ("ModuleDict", "ms.values()")])
def test_a_container_that_is_never_called(kind: str, members: str) -> None:
    source = f"from torch import nn\nfrom torch.optim import SGD\nms = nn.{kind}(made)\no = SGD(ms.parameters())\n"
    assert f"for module in {members}:\n    replicate(module)\no = " in rewritten(RULE, source)


def test_a_list_of_models_from_outside_the_function() -> None:
    source = "from torch.optim import SGD\nms = [A(), B()]\n\ndef fit():\n    o = [SGD(m.parameters()) for m in ms]\n"
    assert inserted(source) == ["for m in ms:", "replicate(m)"][1:]


def test_models_that_an_earlier_loop_looked_up() -> None:
    source = "from torch.optim import SGD\nps = []\nfor k in ms:\n    ps += list(ms[k].parameters())\no = SGD(ps)\n"
    assert "for k in ms:\n    replicate(ms[k])\n    ps" in rewritten(RULE, source)


def test_models_of_a_loop() -> None:
    source = "from torch import optim\nfor m in ms:\n    opts.append(optim.SGD(m.parameters()))\n"
    assert "for m in ms:\n    m = DistributedDataParallel(m)\n    opts" in rewritten(RULE, source)


def test_parameters_that_are_taken_from_each_layer() -> None:
    source = """\
        from torch import optim
        def make(model, name):
            groups = [], []
            for layer in model.modules():
                groups[0].append(layer.bias)
                groups[1].append(layer.weight)
            if name == "SGD":
                optimizer = optim.SGD(groups[0], lr=0.1)
            else:
                optimizer = optim.Adam(groups[0], lr=0.1)
            optimizer.add_param_group({"params": groups[1], "weight_decay": 0.1})
            return optimizer
        """
    assert inserted(source) == [WRAPPED]


def test_models_of_an_earlier_loop() -> None:
    source = "from torch import optim\nps = []\nfor m in (a, b):\n    ps += list(m.parameters())\no = optim.SGD(ps)\n"
    assert inserted(source) == ["a = DistributedDataParallel(a)", "b = DistributedDataParallel(b)"]


def test_each_model_once_for_several_optimizers() -> None:
    source = (
        "from torch import optim\nm = Net()\na = optim.SGD(m.x.parameters())\nb = optim.SGD(m.x.parameters())\nm(1)\n"
    )
    assert inserted(source) == ["m = DistributedDataParallel(m)"]


def test_again_when_the_name_means_another_model() -> None:
    source = "from torch import optim\nm = A()\na = optim.SGD(m.parameters())\nm = B()\nb = optim.SGD(m.parameters())\n"
    assert inserted(source) == ["m = DistributedDataParallel(m)"] * 2


def test_a_model_without_a_name_is_noted() -> None:
    source = "from torch import optim\no = optim.SGD(make().parameters())\n"
    assert edits_of(RULE, source) == []
    told = [(finding.severity, finding.line) for finding in findings_of(RULE, source)]
    assert told == [("note", 2), ("warning", 2)]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "# DistributedDataParallel some day",
        "def is_parallel(model):\n    return type(model) in (nn.DataParallel, nn.parallel.DistributedDataParallel)",
    ],
)
def test_a_program_of_which_nothing_is_divided_is_told(line: str) -> None:
    source = f"""\
from torch import nn, optim
{line}
def make(params):
    return optim.SGD(params, lr=0.1)
"""
    [told] = findings_of(RULE, source)
    assert told.severity == "warning" and "every process does the whole work" in told.message


def test_a_criterion_beside_a_model_is_computed_whole() -> None:
    source = "from torch import optim\no = optim.SGD([*model.parameters(), *criterion.parameters()])\n"
    assert inserted(source) == [WRAPPED]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            """\
            if adam:
                o = optim.Adam(model.parameters())
            elif sgd:
                o = optim.SGD(model.parameters())
            else:
                raise ValueError
            """,
            """\
            model = DistributedDataParallel(model)
            if adam:
                o = optim.Adam(model.parameters())
            elif sgd:
                o = optim.SGD(model.parameters())
            else:
                raise ValueError
            """,
        ),
        (
            """\
            if a:
                model = A()
                o = optim.Adam(model.parameters())
            else:
                model = B()
                o = optim.SGD(model.parameters())
            """,
            """\
            if a:
                model = A()
                model = DistributedDataParallel(model)
                o = optim.Adam(model.parameters())
            else:
                model = B()
                model = DistributedDataParallel(model)
                o = optim.SGD(model.parameters())
            """,
        ),
        (
            """\
            for fold in folds:
                model = Net()
                try:
                    o = optim.SGD(model.parameters())
                except ValueError:
                    pass
            """,
            """\
            for fold in folds:
                model = Net()
                model = DistributedDataParallel(model)
                try:
                    o = optim.SGD(model.parameters())
                except ValueError:
                    pass
            """,
        ),
        (
            """\
            net = Net() if train else None
            if train:
                if adam:
                    o = optim.Adam(net.parameters())
                else:
                    o = optim.SGD(net.parameters())
            """,
            """\
            net = Net() if train else None
            if train:
                net = DistributedDataParallel(net)
                if adam:
                    o = optim.Adam(net.parameters())
                else:
                    o = optim.SGD(net.parameters())
            """,
        ),
        (
            """\
            class Model(Base):
                def __init__(self, opt):
                    if self.is_train and opt.mask:
                        self.mask = Mask()
                    if opt.late():
                        self.late = Late()
                    if self.is_train:
                        params = []
                        if opt.mask:
                            params += self.mask.parameters()
                        if opt.late():
                            params += self.late.parameters()
                        self.o = optim.SGD(params)
            """,
            """\
            class Model(Base):
                def __init__(self, opt):
                    if self.is_train and opt.mask:
                        self.mask = Mask()
                    if opt.late():
                        self.late = Late()
                    if self.is_train:
                        params = []
                        if opt.mask:
                            params += self.mask.parameters()
                        if opt.late():
                            self.late = DistributedDataParallel(self.late)
                            params += self.late.parameters()
                        if opt.mask:
                            self.mask = DistributedDataParallel(self.mask)
                        self.o = optim.SGD(params)
            """,
        ),
        (
            """\
            def train(net, other=None):
                o = [optim.SGD(net.parameters())]
                if other is not None:
                    o.append(optim.SGD(other.parameters()))
            """,
            """\
            def train(net, other=None):
                net = DistributedDataParallel(net)
                o = [optim.SGD(net.parameters())]
                if other is not None:
                    other = DistributedDataParallel(other)
                    o.append(optim.SGD(other.parameters()))
            """,
        ),
        (
            """\
            nets = build()
            for name in nets.keys():
                o[name] = optim.SGD(nets[name].parameters())
            evaluate(nets)
            nets(x)
            """,
            """\
            nets = build()
            nets = DistributedDataParallel(nets)
            for name in nets.keys():
                o[name] = optim.SGD(nets[name].parameters())
            evaluate(nets)
            nets(x)
            """,
        ),
    ],
)
def test_branches(before: str, after: str) -> None:
    assert rewritten(RULE, "from torch import optim\n" + dedent(before)) == "from torch import optim\n" + dedent(after)
