"""The operations of torch, numpy and Python that are known, by what they do with the samples of a batch."""

from __future__ import annotations

LOSSES = frozenset(
    {"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"}
    | {"binary_cross_entropy_with_logits", "kl_div", "soft_margin_loss", "multilabel_soft_margin_loss"}
    | {"cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "ctc_loss"}
    | {"multilabel_margin_loss", "triplet_margin_loss", "gaussian_nll_loss", "poisson_nll_loss", "mse", "nll_loss2d"}
)
LOSS_CLASSES = frozenset(
    {"CrossEntropyLoss", "NLLLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss"}
    | {"KLDivLoss", "SoftMarginLoss", "MultiLabelSoftMarginLoss", "CosineEmbeddingLoss", "HingeEmbeddingLoss"}
    | {"MarginRankingLoss", "MultiMarginLoss", "CTCLoss", "MultiLabelMarginLoss", "TripletMarginLoss"}
    | {"GaussianNLLLoss", "PoissonNLLLoss", "NLLLoss2d"}
)
WEIGHTED = frozenset({"cross_entropy", "nll_loss", "nll_loss2d", "CrossEntropyLoss", "NLLLoss", "NLLLoss2d"})
# Each element of what they return is made of one element, or of one sample, of what they are given.
EACH = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "float",
        "long",
        "double",
        "half",
        "bool",
        "int",
        "short",
        "byte",
        "bfloat16",
        "detach",
        "clone",
        "contiguous",
        "eq",
        "ne",
        "gt",
        "lt",
        "ge",
        "le",
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "sqrt",
        "rsqrt",
        "exp",
        "log",
        "log2",
        "log10",
        "log1p",
        "expm1",
        "abs",
        "clamp",
        "clip",
        "clamp_min",
        "clamp_max",
        "sigmoid",
        "tanh",
        "relu",
        "sin",
        "cos",
        "tan",
        "atan",
        "round",
        "floor",
        "ceil",
        "sign",
        "neg",
        "reciprocal",
        "square",
        "type",
        "type_as",
        "masked_fill",
        "requires_grad_",
        "numpy",
        "leaky_relu",
        "elu",
        "gelu",
        "selu",
        "silu",
        "softplus",
        "hardtanh",
        "logsigmoid",
        "relu6",
        "mish",
        "view_as",
        "expand_as",
        "expand",
        "repeat_interleave",
        "logical_and",
        "logical_or",
        "logical_not",
        "logical_xor",
        "isnan",
        "isinf",
        "isfinite",
        "nan_to_num",
        "where",
        "lerp",
        "xlogy",
        "logit",
        "data",
        "masked_fill_",
        "clone_",
        "randn_like",
        "rand_like",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "normal_",
        "uniform_",
        "bernoulli",
        "random_",
        "fill_",
        "clamp_",
        "add_",
        "sub_",
        "mul_",
        "div_",
        "float_",
        "pin_memory",
        "requires_grad",
        "numpy_",
        "pairwise_distance",
        "cosine_similarity",
        "one_hot",
        "as_tensor",
        "tensor",
        "from_numpy",
        "asarray",
        "array",
        "float32",
        "int64",
        "float64",
        "Variable",
        "erf",
        "lgamma",
        "digamma",
        "minimum",
        "maximum",
        "fmod",
        "remainder",
        "floor_divide",
        "true_divide",
        "equal_",
        "not_equal",
        "less",
        "greater",
        "real",
        "imag",
        "angle",
        "view_as_real",
        "maximum_",
        "autocast",
        "dropout",
        "alpha_dropout",
        "binary_threshold",
        "softsign",
        "hardsigmoid",
        "hardswish",
        "prelu",
        "rrelu",
        "glu",
        "heaviside",
        "threshold",
        "astype",
        "copy",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "linear",
        "embedding",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "adaptive_max_pool1d",
        "adaptive_max_pool2d",
        "adaptive_avg_pool3d",
        "adaptive_max_pool3d",
        "lp_pool1d",
        "lp_pool2d",
        "pixel_shuffle",
        "pixel_unshuffle",
        "grid_sample",
        "local_response_norm",
        "celu",
        "softshrink",
        "hardshrink",
        "tanhshrink",
        "batch_norm",
        "layer_norm",
        "instance_norm",
        "group_norm",
        "nan_to_num_",
        "item_",
        "exp_",
        "log_",
        "sqrt_",
        "pow_",
        "neg_",
        "abs_",
        "sigmoid_",
        "tanh_",
        "relu_",
        "square_",
        "reciprocal_",
        "floor_",
        "ceil_",
        "round_",
        "sign_",
        "zero_",
        "bernoulli_",
    ]
)
# They lay a tensor out in other dimensions.
LAYOUTS = frozenset(
    {"view", "reshape", "flatten", "permute", "unflatten", "swapaxes", "swapdims", "movedim", "moveaxis", "ravel"}
    | {"unsqueeze", "squeeze", "transpose", "t", "T", "adjoint"}
)
# They may put the samples along another dimension.
REORDERS = LAYOUTS - {"flatten", "ravel", "unsqueeze", "squeeze"} | {"mT", "rearrange", "einsum", "unfold", "fold"}
REORDERS |= {"expand", "repeat", "tile", "broadcast_to"}
# They put values at places of a tensor, along a dimension.
INTO = frozenset({"index_add", "index_copy", "index_fill", "scatter_add", "scatter_reduce"})
NEW = frozenset({"new_tensor", "new_zeros", "new_ones", "new_full", "new_empty"})
COUPLE = frozenset(
    {"cdist", "pdist", "corrcoef", "cov", "bincount", "histc", "histogram", "unique", "unique_consecutive", "flipud"}
    | {
        "take",
        "pca_lowrank",
        "msort",
        "dist",
        "block_diag",
        "diagflat",
        "fill_diagonal",
        "svd_lowrank",
        "meshgrid",
        "cartesian_prod",
        "combinations",
        "fftn",
        "ifftn",
        "rfftn",
        "diag",
        "scan",
        "hfftn",
        "ihfftn",
        "irfftn",
        "multi_dot",
        "chain_matmul",
        "norm_except_dim",
        "index_put",
    }
)
# Of a matrix they make something of all its rows together.
OF_MATRICES = frozenset(
    {"qr", "svd", "svdvals", "eig", "eigvals", "inv", "pinv", "det", "triu", "tril", "trace", "fft2"}
    | {
        "ifft2",
        "rfft2",
        "irfft2",
        "hfft2",
        "ihfft2",
        "lu_factor_ex",
        "rot90",
        "renorm",
        "matrix_norm",
        "matrix_rank",
        "cholesky",
        "logdet",
        "slogdet",
    }
    | {"lstsq", "solve", "pinverse", "lu", "lu_factor", "geqrf", "nuclear_norm", "cond"}
)
# They make something of each two elements, or of a sum over them, if both are samples.
PAIRS = frozenset({"inner", "outer", "ger", "kron", "tensordot", "dot", "vdot", "addmm", "addmv", "addr"})
# Places of samples that they are given are those of other samples.
MOVE = frozenset({"roll", "flip", "remainder", "fmod", "cat", "concat", "stack"})
# Their operands meet value by value, with as many dimensions as the one that has most.
MEET = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "equal", "not_equal", "less", "greater", "logical_and", "logical_or"}
    | {"add", "sub", "subtract", "mul", "multiply", "div", "true_divide", "maximum", "minimum", "where"}
)
PARTS = frozenset({"interpolate", "upsample", "upsample_bilinear", "upsample_nearest", "pad"})
CUTS = frozenset({"chunk", "split", "unbind", "split_with_sizes", "tensor_split"})
# With a dimension other than the first they work on each sample for itself.
ALONG = frozenset(
    [
        "softmax",
        "log_softmax",
        "softmin",
        "argmax",
        "argmin",
        "max",
        "min",
        "sum",
        "mean",
        "std",
        "var",
        "norm",
        "prod",
        "cumsum",
        "cumprod",
        "topk",
        "sort",
        "all",
        "any",
        "normalize",
        "logsumexp",
        "nansum",
        "nanmean",
        "median",
        "mode",
        "argsort",
        "gumbel_softmax",
        "amax",
        "amin",
        "flip",
        "roll",
        "kthvalue",
        "count_nonzero",
        "var_mean",
        "std_mean",
        "aminmax",
        "cummax",
        "cummin",
        "logcumsumexp",
        "quantile",
        "nanquantile",
        "nanmedian",
        "diff",
        "gradient",
        "vector_norm",
        "fft",
        "ifft",
        "rfft",
        "irfft",
        "frobenius_norm",
        "trapezoid",
        "trapz",
        "cumulative_trapezoid",
    ]
)
KEEP_SHAPE = frozenset(
    {
        "softmax",
        "log_softmax",
        "softmin",
        "cumsum",
        "cumprod",
        "sort",
        "argsort",
        "normalize",
        "gumbel_softmax",
        "flip",
        "topk",
        "roll",
        "cummax",
        "cummin",
        "logcumsumexp",
        "diff",
        "fft",
        "ifft",
        "rfft",
        "irfft",
    }
)
# Without a dimension they work along the last one, or one that their argument's shape says.
LAST = frozenset(
    {"softmax", "log_softmax", "sort", "argsort", "topk", "gumbel_softmax", "mode", "kthvalue", "diff", "fft", "ifft"}
    | {"rfft", "irfft", "trapezoid", "trapz", "cumulative_trapezoid"}
)
# Layers whose parameters are drawn when they are made.
DRAWN_AT_FIRST = frozenset(
    {
        "Linear",
        "Bilinear",
        "LazyLinear",
        "Embedding",
        "EmbeddingBag",
        "LSTM",
        "GRU",
        "RNN",
        "LSTMCell",
        "GRUCell",
        "RNNCell",
    }
    | {f"Conv{of}{n}d" for of in ("", "Transpose") for n in (1, 2, 3)}
    | {"MultiheadAttention", "Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer"}
)
# They run along the last dimension where none is given.
TAKE_LAST = frozenset({"topk", "sort", "argsort", "mode", "kthvalue"})
_OF_PLANES = (
    *("pixel_shuffle", "pixel_unshuffle", "pixelshuffle", "pixelunshuffle", "grid_sample", "response"),
    *("channelshuffle", "channel_shuffle", "crossmaplrn"),
)
# Operations and modules of torch that mix what lies along the last dimension, or along the second one.
MIX_LAST = (
    *("linear", "layernorm", "layer_norm", "rmsnorm", "rms_norm", "conv", "pool", "interpolate", "upsample"),
    *("groupnorm", "group_norm", "instancenorm", "instance_norm", *_OF_PLANES),
)
MIX_SECOND = (
    *("conv", "groupnorm", "group_norm", "batchnorm", "batch_norm", "scaled_dot_product_attention", *_OF_PLANES),
)
SHAPE_ATTRIBUTES = frozenset(
    {
        "dtype",
        "device",
        "ndim",
        "is_cuda",
        "is_xpu",
        "is_mps",
        "is_cpu",
        "requires_grad",
        "grad_fn",
        "layout",
        "itemsize",
    }
)
FACTORIES = frozenset(
    {"ones", "zeros", "full", "rand", "randn", "empty", "LongTensor", "FloatTensor", "normal", "randint"}
)
# `Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`: of sizes they make a tensor, of data a copy.
TENSOR_TYPES = frozenset(
    f"torch.{where}{each}Tensor"
    for where in ("", "cuda.")
    for each in ("", "Float", "Long", "Double", "Half", "Int", "Short", "Byte", "Bool", "Char", "BFloat16")
)
# Of numpy and numpy.random; the size comes last, or is the only argument.
NUMPY_FACTORIES = frozenset(
    {"ones", "zeros", "full", "empty", "normal", "uniform", "rand", "randn", "randint", "random", "random_sample"}
    | {"standard_normal", "choice", "beta", "binomial", "poisson", "exponential", "gamma", "dirichlet", "laplace"}
    | {"gumbel", "lognormal", "multivariate_normal"}
)
# Of torchvision.transforms.functional: of a batch of images, each is changed for itself.
OF_IMAGES = frozenset(
    {"affine", "rotate", "resize", "crop", "center_crop", "resized_crop", "hflip", "vflip", "pad", "gaussian_blur"}
    | {"adjust_brightness", "adjust_hue", "adjust_saturation", "adjust_gamma", "normalize", "invert", "perspective"}
)
# They draw samples that they are given first: a picture of rank 0's shows what one of all would.
PICTURES = frozenset(
    {"torchvision.utils.save_image", "add_image", "add_images", "matplotlib.pyplot.imsave", "scipy.misc.imsave"}
    | {"imageio.imwrite", "imageio.imsave", "imageio.v2.imwrite", "skimage.io.imsave", "cv2.imwrite"}
)
# They ask whether a number is one, and are not differentiated.
PREDICATES = frozenset({"isnan", "isinf", "isfinite"})
KEEP_NUMBER = frozenset(
    {
        "item",
        "detach",
        "cpu",
        "cuda",
        "to",
        "float",
        "double",
        "half",
        "numpy",
        "clone",
        "data",
        "squeeze",
        "long",
        "view",
    }
    | {"reshape", "contiguous", "tolist", "int", "unsqueeze", "flatten", "requires_grad_"}
)
HOST = frozenset({"item", "tolist", "numpy"})
