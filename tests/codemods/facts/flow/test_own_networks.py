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
