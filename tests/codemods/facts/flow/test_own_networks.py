"""What a program looks up, or lets a library make, may be a network of its own, of which nothing is known then."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.test_by_name import APART, COUPLED, HEAD, NETS, TRAINS, plain

REGISTRY = """\
class Registry:
    def __init__(self):
        self.known = {}

    def register(self, cls):
        self.known[cls.__name__] = cls
        return cls

    def build(self, name):
        return self.known[name]()


registry = Registry()
"""
FUNCTION = "NETS = {}\n\n\ndef register(cls):\n    NETS[cls.__name__] = cls\n    return cls\n\n\n"
LIBRARY = "import factory\nimport hydra\n"


def decorated(decorator: str) -> str:
    return NETS.replace("class ", f"@{decorator}\nclass ")


@pytest.mark.parametrize(
    ("before", "nets", "made"),
    [
        (REGISTRY, decorated("registry.register"), "registry.build(sys.argv[1])"),
        (FUNCTION, decorated("register"), "NETS[sys.argv[1]]()"),
        (LIBRARY, decorated("factory.register"), "factory.build(sys.argv[1])"),
        (
            "import functools\n" + FUNCTION,
            decorated("functools.partial(register)"),
            "NETS[sys.argv[1]]()",
        ),
        (LIBRARY, NETS, "hydra.utils.instantiate(sys.argv[1])"),
        (LIBRARY, NETS + "@factory.register\ndef small():\n    return B()\n", "factory.build(sys.argv[1])"),
        ("", NETS, 'eval(sys.argv[1] + "()")'),
        ("", NETS, "globals().get(sys.argv[1])()"),
        ("", NETS, "vars()[sys.argv[1]]()"),
        ("", NETS, "[each for each in A.__subclasses__()][0]()"),
        ("", NETS, "getattr(sys.modules[__name__], sys.argv[1])()"),
    ],
)
def test_a_network_that_is_not_seen(before: str, nets: str, made: str) -> None:
    program = HEAD + before + nets.replace("return {}", f"return {COUPLED}") + TRAINS.format(made)
    assert "DistributedDataParallel" not in plain(program)


def test_a_network_of_a_library_is_known_to_keep_samples_apart() -> None:
    program = HEAD + LIBRARY + NETS.replace("{}", APART) + TRAINS.format("factory.build(sys.argv[1])")
    assert "ddp_model(x)" in plain(program)
    assert "ddp_model(x)" in plain(program.replace("factory.build(", "torch.hub.load("))


OTHER = "    def other(self, x):\n        return self.out(x - x.flip(0))\n"


@pytest.mark.parametrize(
    ("method", "after"),
    [
        ("    def __call__(self, x):\n        return self.other(x)\n", ""),
        ("", "model.forward = model.other\n"),
        ("", "model.forward = model.out\n"),
        ("", "A.forward = A.other\n"),
        ("", 'setattr(model, "forward", model.other)\n'),
        ("", "import types\nmodel.forward = types.MethodType(A.other, model)\n"),
        ("", "model.__class__ = B\n"),
    ],
)
def test_a_forward_that_is_another_one(method: str, after: str) -> None:
    first = "    def forward(self, x):\n        return self"
    nets = NETS.replace(first, f"{OTHER}\n{method}\n{first}", 1)
    program = HEAD + nets.replace("return {}", f"return {COUPLED}") + TRAINS.format("A()")
    assert "ddp_model(x)" in plain(program.replace(method, "") if method else program)
    assert "DistributedDataParallel" not in plain(program.replace("optimizer = ", f"{after}optimizer = ", 1))


def test_a_forward_that_a_model_chooses() -> None:
    chosen = "        self.forward = self.other\n\n" + OTHER
    program = HEAD + NETS.replace("Linear(4, 3)\n", f"Linear(4, 3)\n{chosen}", 1).replace("{}", APART)
    assert "DistributedDataParallel" not in plain(program + TRAINS.format("A()"))
    apart = program.replace("self.out(x - x.flip(0))", "self.out(3 * x)")
    assert "ddp_model(x)" in plain(apart + TRAINS.format("A()"))


@pytest.mark.parametrize("decorator", ["torch.no_grad()", "functools.lru_cache", "contextlib.contextmanager"])
def test_a_function_that_is_only_wrapped_is_in_no_registry(decorator: str) -> None:
    nets = f"{NETS}@{decorator}\ndef never():\n    return None\n"
    code = plain(HEAD + "import contextlib\nimport functools\nimport factory\n" + nets + TRAINS.format("A()"))
    assert "DistributedDataParallel" in code


TABLE = "import sys\nimport zoo\n"


CHOSEN = ("zoo.__dict__[sys.argv[1]]()", "vars(zoo)[sys.argv[1]]()")


@pytest.mark.parametrize("made", CHOSEN)
@pytest.mark.parametrize(
    "looks",
    [
        "",
        "names = sorted(each for each in zoo.__dict__ if each.islower() and callable(zoo.__dict__[each]))\n",
        "print(dir(zoo), zoo.__version__, 'a' in zoo.__dict__, [*zoo.__dict__.keys()], len(vars(zoo)))\n",
        'print(getattr(zoo, "names"), zoo.models.first)\n',
    ],
)
def test_what_a_library_has_is_none_of_the_programs_own(made: str, looks: str) -> None:
    program = HEAD + TABLE + NETS.replace("return {}", f"return {COUPLED}") + looks + TRAINS.format(made)
    assert "ddp_model(x)" in plain(program)


@pytest.mark.parametrize(
    "puts",
    [
        'zoo.__dict__["B"] = B\n',
        "zoo.__dict__.update(B=B)\n",
        "vars(zoo)['B'] = B\n",
        "table = zoo.__dict__\ntable['B'] = B\n",
        "table = vars(zoo)\ntable['B'] = B\n",
        "zoo.B = B\n",
        "zoo.B, other = B, A\n",
        'setattr(zoo, "B", B)\n',
        'zoo.__setattr__("B", B)\n',
        "other = zoo\nother.B = B\n",
        "for other in (zoo,):\n    other.B = B\n",
        'getattr(zoo, "__dict__")["B"] = B\n',
        "zoo = {}\n",
        "def put(where):\n    where.B = B\n\n\nput(zoo)\n",
        "zoo.__dict__ |= {'B': B}\n",
        "for zoo.B in (B,):\n    pass\n",
        'sys.modules["zoo"].B = B\n',
        "zoo.register(B)\n",
        "@zoo.register\nclass C(B):\n    pass\n",
        "import other\nother.zoo.B = B\n",
        "kept = [B]\n",
    ],
)
def test_a_program_may_put_its_own_network_in_a_library(puts: str) -> None:
    nets = NETS.replace("return {}", f"return {COUPLED}")
    for made in CHOSEN:
        program = HEAD + TABLE + nets + puts + TRAINS.format(made)
        assert "DistributedDataParallel" not in plain(program)
        assert "DistributedDataParallel" not in plain(program.replace("import zoo", "import zoo.models as zoo"))


def test_what_is_chosen_of_torch_or_of_the_program_is_not_one_of_a_library() -> None:
    nets = NETS.replace("return {}", f"return {COUPLED}")
    ways = ("nn.__dict__[sys.argv[1]](4, 3)", "table.__dict__[sys.argv[1]]()", "globals()[sys.argv[1]](3)")
    for made in (*ways, "getattr(nn, sys.argv[1])(4, 3)", "getattr(table, sys.argv[1])()"):
        table = "\nclass Table:\n    pass\n\n\ntable = Table()\ntable.B = B\n"
        assert "DistributedDataParallel" not in plain(HEAD + TABLE + nets + table + TRAINS.format(made))


def test_a_network_that_is_chosen_of_a_library_without_others() -> None:
    program = HEAD + TABLE + TRAINS
    for made in (*CHOSEN, "getattr(models, sys.argv[1])(pretrained=True)"):
        assert "ddp_model(x)" in plain("from torchvision import models\n" + program.format(made))
    assert "DistributedDataParallel" not in plain(program.format("getattr(nn, sys.argv[1])(4, 3)"))


@pytest.mark.parametrize("puts", ["", "models.B = B\n", 'setattr(models, "B", B)\n', "kept = [B]\n"])
def test_a_network_that_is_chosen_of_torchvision_beside_others(puts: str) -> None:
    nets = NETS.replace("return {}", f"return {COUPLED}")
    program = "from torchvision import models\n" + HEAD + "import sys\n" + nets + puts
    code = plain(program + TRAINS.format("getattr(models, sys.argv[1])()"))
    assert ("ddp_model(x)" in code) is (puts == "")


def test_what_a_name_chooses_of_another_library_may_be_no_network() -> None:
    """A metric of torchmetrics gets the batches of all ranks."""
    trains = TRAINS.format("nn.Linear(4, 3)").replace("loss = F.cross_entropy(model(x), y)", "out = model(x)\n    {}")
    shows = "loss = F.cross_entropy(out, y)\n    print(metric(out, y).item())"
    code = plain(HEAD + TABLE + "metric = getattr(zoo, sys.argv[1])()\n" + trains.replace("{}", shows))
    assert "ddp_model(x)" in code and "whole_batch(metric(" not in code
