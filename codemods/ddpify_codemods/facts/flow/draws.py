"""Random numbers: which calls draw them, and which generators may be at another place on each rank."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ..reach import unused_networks
from ..script import Script
from .noise import has_noise
from .sample_draws import on_the_way_to_samples

_NAMES = {
    "random": frozenset(
        {"random", "randint", "randrange", "choice", "choices", "sample", "shuffle", "uniform", "gauss"}
        | {"normalvariate", "triangular", "betavariate", "expovariate", "getrandbits"}
    ),
    "numpy": frozenset(
        {"rand", "randn", "randint", "random", "random_sample", "choice", "shuffle", "permutation", "uniform"}
        | {"normal", "beta", "binomial", "poisson", "standard_normal", "exponential", "gamma", "dirichlet"}
        | {"laplace", "gumbel", "lognormal", "multivariate_normal", "multinomial", "geometric", "weibull", "logistic"}
    ),
    "torch": frozenset(
        {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "bernoulli"}
        | {"multinomial", "poisson", "random_split", "random_unstructured", "random_structured"}
    ),
}
_MODULES = {
    "random": ("random",),
    "numpy": ("numpy.random",),
    "torch": ("torch", "torch.utils.data", "torch.nn.utils.prune"),
}
LIBRARIES = frozenset(_MODULES)
LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
# They bring the generators of all ranks to the same place.
SEEDS = {
    "torch.manual_seed": "torch",
    "torch.random.manual_seed": "torch",
    "numpy.random.seed": "numpy",
    "random.seed": "random",
}
# These seed all of them.
SEED_ALL = frozenset(
    {"pytorch_lightning.seed_everything", "lightning.seed_everything", "transformers.set_seed"}
    | {"accelerate.utils.set_seed"}
)
_CHANGES = frozenset({"shuffle", "random_split", "random_unstructured", "random_structured"})
# Functions and classes of scikit-learn that draw from numpy's generator unless `random_state` says otherwise.
_OF_SKLEARN = frozenset(
    {"train_test_split", "shuffle", "resample", "ShuffleSplit", "StratifiedShuffleSplit", "GroupShuffleSplit"}
    | {"RepeatedKFold", "RepeatedStratifiedKFold", "KMeans", "MiniBatchKMeans", "GaussianMixture", "TSNE"}
)
_IF_SHUFFLED = frozenset({"KFold", "StratifiedKFold", "StratifiedGroupKFold"})


def library_of(name: str) -> str:
    """The library whose generator a function draws from: "random", "numpy", "torch"; "" for one that does not draw."""
    module, _, last = name.rpartition(".")
    found = (library for library, modules in _MODULES.items() if module in modules and last in _NAMES[library])
    return next(found, "torch" if module == "torch.nn.init" and last.endswith("_") and last not in _CONSTANT else "")


def library_drawn_from(name: str, call: ast.Call) -> str:
    """The library whose generator a call of a function draws from; "" for none, and where it is given another one."""
    if may_draw(name, call):
        return "numpy" if state_of(call) is None else ""
    return "" if any(word.arg == "generator" for word in call.keywords) else library_of(name)


def draws_from(script: Script, call: ast.Call) -> str:
    """The library whose generator a call draws from: random numbers and tensors, weights of layers and networks."""
    name = script.qualified(call.func)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    own = "torch" if method in DRAWING or _LAYERS.match(name) is not None else ""
    return library_drawn_from(name, call) or own


def may_draw(name: str, call: ast.Call) -> bool:
    """Whether a call of scikit-learn draws from numpy's generator, unless it is told where to begin."""
    last = name.rpartition(".")[2]
    shuffled = last in _IF_SHUFFLED and any(word.arg == "shuffle" for word in call.keywords)
    return name.startswith("sklearn.") and (shuffled or last in _OF_SKLEARN or ".datasets.make_" in name)


def state_of(call: ast.Call) -> ast.expr | None:
    """What says where a call's random numbers begin: `random_state=42`; None for nothing."""
    states = [word.value for word in call.keywords if word.arg == "random_state"]
    return next((each for each in states if not (isinstance(each, ast.Constant) and each.value is None)), None)


_LAYERS = re.compile(
    r"torch\.nn\.(Linear|Bilinear|Conv|Embedding|RNN|LSTM|GRU|Multihead|Transformer)|torchvision\.models\."
)
# Methods of tensors that fill them with what they draw.
DRAWING = frozenset({"normal_", "uniform_", "random_", "bernoulli_", "exponential_", "log_normal_", "cauchy_"})
_CONSTANT = frozenset({"zeros_", "ones_", "constant_", "eye_", "dirac_"})


def changes(name: str) -> bool:
    """Whether a function that draws changes what it is given, or splits a data set."""
    return name.rpartition(".")[2] in _CHANGES or name.startswith("torch.nn.init.")


def drawn_for_samples(scripts: Sequence[Script]) -> frozenset[str]:
    """The libraries whose numbers a data set of the program draws on the way to a sample."""
    calls = on_the_way_to_samples(scripts)
    own = frozenset(library_of(script.qualified(call.func)) for script, call in calls)
    names = (script.qualified(call.func) for script in scripts for call in script.find(ast.Call))
    return own.union(*(each for name in names for start, each in _BESIDE_TORCH.items() if name.startswith(start)))


def apart_for_samples(scripts: Sequence[Script], without: frozenset[ast.AST] = frozenset()) -> set[str]:
    """The libraries whose generators ranks use for their own samples from the first pass on. Workers of loaders seed
    `random` by torch's generator.

    Args: the program; the classes and calls of networks that drop no numbers, since they are only evaluated.
    """
    drawn = {*drawn_for_samples(scripts)} - {""}
    if drawn and _loads_in_workers(scripts):
        return drawn - {"random"} | {"torch"}
    return drawn | ({"torch"} if differs_on_ranks(scripts, without) else set())


def _loads_in_workers(scripts: Sequence[Script]) -> bool:
    """Whether all loaders of a program are made with workers."""
    calls = [call for script in scripts for call in script.find(ast.Call) if script.qualified(call.func) in LOADERS]
    classes = [each for script in scripts for each in script.find(ast.ClassDef)]
    derived = any(ast.unparse(base).endswith("DataLoader") for each in classes for base in each.bases)
    return bool(calls) and not derived and all(map(_has_workers, calls))


def _has_workers(call: ast.Call) -> bool:
    workers = next((word.value for word in call.keywords if word.arg == "num_workers"), None)
    return isinstance(workers, ast.Constant) and isinstance(workers.value, int) and workers.value > 0


def differs_on_ranks(scripts: Sequence[Script], without: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether a program draws from torch's generator for its samples: dropout, noise in a step, random transforms."""
    unused = unused_networks(scripts)
    return "torch" in drawn_for_samples(scripts) or any(has_noise(each, without, unused) for each in scripts)


# The generators that transforms of libraries draw from, beside torch's.
_BESIDE_TORCH = {
    "albumentations.": frozenset({"random", "numpy"}),
    "torchvision.transforms.RandomChoice": frozenset({"random"}),
    "torchvision.transforms.RandomOrder": frozenset({"random"}),
}
