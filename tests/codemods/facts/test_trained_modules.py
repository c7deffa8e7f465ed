"""The modules whose parameters an optimizer is given."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.trained_modules import Sources, bound_at

from tests.codemods.checks import node_of, script_of


@pytest.mark.parametrize(
    ("lines", "given", "modules"),
    [
        ("", "model.parameters()", ["model"]),
        ("ps = model.parameters()", "ps", ["model"]),
        ("from net import model", "model.parameters()", ["model"]),
        ("from net import model as net\nps = list(net.named_parameters())", "ps", ["net"]),
        ("import net", "net.model.parameters()", ["net.model"]),
        ("import helpers\nmodel.train()", "helpers.get_params(model)", ["model"]),
        ("ps = []\nfor net in nets:\n    ps += net.parameters()", "ps", ["net"]),
        ("", "[p for net in nets for p in net.parameters()]", ["net"]),
        ("ps = [], []\nfor m in net.modules():\n    ps[0].append(m.bias)\n    ps[1].append(m.weight)", "ps[0]",
         ["net", "net"]),
        ("ps, qs = [], []\nfor k, m in net.named_modules():\n    ps.append(m.weight.data)", "ps", ["net"]),
        ("ps = []\nfor k, m in self.net.named_modules():\n    ps.append(m.im.scale)", "ps", ["self.net"]),
        ("ps = []\nfor m in net.modules():\n    for k, p in m.named_parameters(recurse=False):\n        ps.append(p)",
         "ps", ["net"]),
        ("", "[m.weight for m in net.modules()]", ["net"]),
        ("ps = []\nfor m in stored.items():\n    ps.append(m.weight)", "ps", []),
        ("ps = list(a.parameters())\nps.extend(b.parameters())", "ps", ["a", "b"]),
    ],
)  # fmt: skip
def test_parameters_are_followed_to_their_modules(lines: str, given: str, modules: list[str]) -> None:
    script = script_of(f"import torch\n{lines}\no = torch.optim.SGD({given}, lr=0.1)")
    call = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "torch.optim.SGD")
    sources = Sources(script, call)
    sources.follow_all(call.args)
    assert sorted(base.code for base in sources.bases) == modules


MADE = "optimizer = optim.SGD(model.parameters())\n"
STATE = "\noptimizer.state_dict()"


@pytest.mark.parametrize(
    ("lines", "modules"),
    [
        (f"{MADE}made = Lookahead(optimizer){STATE}", ["model"]),
        (f"{MADE}optimizer = Lookahead(optimizer){STATE}", ["model"]),
        (f"optimizer = build(model.parameters())\noptimizer = Noam(optimizer)\nmade = Warmup(optimizer){STATE}",
         ["model"]),
        ("model = load(cfg)\nmade = build(cfg, model)\nmodel = wrap(cfg, model)\nmodel.eval(cfg.train)",
         ["cfg", "model"]),
        (f"{MADE}made = Warmup(optimizer, after=optim.lr_scheduler.StepLR(optimizer, 3)){STATE}", ["model"]),
        (f"{MADE}model, optimizer = amp.initialize(model, optimizer){STATE}\nmodel.eval()", ["model"]),
        ("class T:\n    def f(self):\n        self.o = optim.SGD(self.net.parameters())\n"
         "        made = Noam(self.o, optim.lr_scheduler.StepLR(self.o, 3))\n        self.o.state_dict()",
         ["self.net"]),
        (f"optimizer = build(3)\nmade = Lookahead(optimizer){STATE}\noptimizer.step()", []),
        (f"def f(optimizer):\n    optim.lr_scheduler.StepLR(optimizer, 3)\n    made = Warmup(optimizer){STATE}", []),
        (f"def f(optimizer):\n    optimizer.param_groups\n    made = Warmup(optimizer){STATE}", []),
        (f"optimizer = build(3)\noptimizer = Lookahead(optimizer){STATE}", []),
        ("model = wrap(model)\nmade = build(model)\nmodel.state_dict()", ["model"]),
        ("made = build(model)\nmodel.step(3)\nmodel.state_dict()", ["model"]),
        ("made = build(model)\nmodel.step()\nmodel.train()", ["model"]),
        ("class Agent(Base):\n    pass\n\n\nagent = Agent()\nmade = build(agent)\nagent.step()\nagent.state_dict()",
         ["agent"]),
        ("class Own(object):\n    pass\n\n\noptimizer = Own(optim.SGD(model.parameters()))\n"
         f"made = Warmup(optimizer, optim.lr_scheduler.StepLR(optimizer, 3)){STATE}\noptimizer.step()", ["model"]),
        ("class Base(optim.Optimizer):\n    pass\n\n\nclass Own(Base):\n    pass\n\n\n"
         "optimizer = Own(model.parameters())\n"
         f"made = Warmup(optimizer, optim.lr_scheduler.StepLR(optimizer, 3)){STATE}", ["model"]),
        ("model = Noam(model)\nmade = build(model)\nmodel(3)\nmodel.step()", ["model"]),
    ],
)  # fmt: skip
def test_an_optimizer_is_no_module(lines: str, modules: list[str]) -> None:
    script = script_of(f"from torch import optim\nfrom lib import amp, build, wrap, Lookahead, Noam, Warmup\n{lines}")
    makers = ("Lookahead", "Noam", "Warmup", "amp.initialize", "build")
    call = [each for each in script.find(ast.Call) if ast.unparse(each.func) in makers][-1]
    sources = Sources(script, call)
    sources.follow_all([*call.args, *(keyword.value for keyword in call.keywords)])
    assert sorted({base.code for base in sources.bases}) == modules


def test_a_comprehension_binds_its_names() -> None:
    script = script_of("x = [net.weight for net in nets]\ny = net.weight")
    inner = node_of(script, "[net.weight for net in nets]")
    assert bound_at(script, inner.elt) is inner
    assert bound_at(script, script.tree.body[1].value) is None  # type: ignore[attr-defined]
