"""Functions and methods of numpy, torch and others, by what they do to the dimensions of arrays."""

from __future__ import annotations

# They are given sizes: one by one or in a tuple, or as the last of their arguments.
OF_SIZES = frozenset({"empty", "ones", "rand", "randn", "random", "random_sample", "standard_normal", "zeros"})
SIZE_LAST = frozenset({"binomial", "choice", "exponential", "laplace", "normal", "poisson", "randint", "uniform"})
# Of generators, `RandomState(0).randn(n, 3)`.
OF_GENERATORS = frozenset({"rand", "randn", "random_sample", "standard_normal"})
LINES = frozenset({"arange", "bincount", "geomspace", "linspace", "logspace", "permutation", "randperm"})
COPIES = frozenset(
    {"DoubleTensor", "FloatTensor", "IntTensor", "LongTensor", "Parameter", "Tensor", "Variable", "array"}
    | {"as_tensor", "asarray", "ascontiguousarray", "deepcopy", "float32", "float64", "from_numpy", "list"}
    | {"tensor", "tuple"}
)
NUMBERS = frozenset({"bool", "float", "int", "item", "len", "round"})
# They make something for each element.
EACH = frozenset(
    {"abs", "astype", "bernoulli", "bool", "clamp", "clip", "clone", "contiguous", "copy", "cos", "cpu"}
    | {"cuda", "cumsum", "detach", "double", "drop", "dropna", "exp", "fill_", "fillna", "flip", "float", "floor"}
    | {"half", "head", "int", "log", "log1p", "logical_not", "long", "nan_to_num", "neg", "normal_"}
    | {"normalize", "numpy", "ones_like", "pow", "rand_like", "randn_like", "relu", "requires_grad_"}
    | {"reset_index", "roll", "round", "sample", "shuffle", "sigmoid", "sign", "sin", "softmax"}
    | {"sort_values", "sqrt", "square", "tan", "tanh", "to", "type", "uniform_", "zeros_like"}
)
MEET = frozenset({"add", "atan2", "div", "eq", "ge", "gt", "lt", "maximum", "minimum", "mul", "pow", "sub", "where"})
REDUCE = frozenset({"all", "any", "argmax", "argmin", "logsumexp", "mean", "norm", "prod", "std", "sum", "var"})
# Along a dimension, torch gives two of them.
AMONG = frozenset({"max", "median", "min"})
SAME = frozenset({"T", "data", "fit_transform", "permute", "real", "swapaxes", "t", "to_numpy", "transpose", "values"})
TEXTS = frozenset({"genfromtxt", "loadtxt"})  # of one column or more
TABLES = frozenset({"DataFrame", "read_csv", "read_excel", "read_feather", "read_parquet", "read_table"})
# What they give has `data` with a row for each `target`.
BUNCHES = frozenset(
    {"fetch_california_housing", "load_boston", "load_breast_cancer", "load_diabetes", "load_digits", "load_iris"}
    | {"load_wine"}
)
MADE = ("make_regression", "make_classification", "make_moons", "make_circles", "make_blobs", "make_friedman")
LIBRARIES = ("torch.", "numpy.", "pandas.", "sklearn.", "math.", "random.", "scipy.")
