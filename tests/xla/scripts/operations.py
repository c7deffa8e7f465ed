"""Computes layers, losses and operations on the host and on an XLA device; prints those that differ, and their number.

Compared are the outputs and the gradients of all inputs and parameters.
"""

import copy
import warnings

import ddpify_runtime.xla
import torch
import torch.nn.functional as F
import torch_xla
from ddpify_runtime import init_process_group
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
init_process_group("xla", init_method="xla://")
torch.manual_seed(0)

ROW, IMAGE, LINE = torch.randn(8, 12), torch.randn(4, 6, 12, 12), torch.randn(4, 6, 20)
CUBE, WORDS = torch.randn(2, 3, 6, 6, 6), torch.randn(4, 10, 8)
A, B, P, Q = torch.randn(8, 5), torch.randn(8, 5), torch.rand(8, 5) * 0.8 + 0.1, torch.rand(8, 5)
LABEL = torch.arange(8) % 5
IGNORED = LABEL.where(LABEL != 2, -100)

LAYERS = [
    (ROW, [nn.ELU(), nn.SELU(), nn.CELU(1.3), nn.ELU(0.7), nn.Hardsigmoid(), nn.Hardswish(), nn.Hardtanh()]),
    (ROW, [nn.GLU(), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.Softmin(1), nn.LogSoftmax(1)]),
    (ROW, [nn.PReLU(), nn.ReLU6()]),
    (ROW, [nn.Hardshrink(), nn.Softshrink(), nn.Tanhshrink(), nn.LeakyReLU(0.2), nn.LogSigmoid(), nn.Softplus(2, 1)]),
    (ROW, [nn.Softsign(), nn.Threshold(0.1, 0.2), nn.LayerNorm(12), nn.RMSNorm(12), nn.BatchNorm1d(12)]),
    (ROW, [nn.Linear(12, 3)]),
    (IMAGE, [nn.Conv2d(6, 4, 3), nn.Conv2d(6, 6, 3, groups=6), nn.Conv2d(6, 4, 3, 2, 1, 2)]),
    (IMAGE, [nn.ConvTranspose2d(6, 4, 4, 2, 1)]),
    (IMAGE, [nn.Conv2d(6, 4, 3, padding=1, padding_mode=mode) for mode in ("reflect", "circular", "replicate")]),
    (IMAGE, [nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.AvgPool2d(3, 2, 1, count_include_pad=False)]),
    (IMAGE, [nn.AdaptiveAvgPool2d(5), nn.AdaptiveMaxPool2d(3), nn.BatchNorm2d(6), nn.InstanceNorm2d(6)]),
    (IMAGE, [nn.GroupNorm(2, 6)]),
    (IMAGE, [nn.LocalResponseNorm(2), nn.ReflectionPad2d(2), nn.PixelUnshuffle(2), nn.Unfold(3), nn.ChannelShuffle(2)]),
    (IMAGE, [nn.Upsample(scale_factor=scale) for scale in (2, 1.7, 0.4, (1.3, 2.6))]),
    (IMAGE, [nn.Upsample(scale_factor=1.5, mode=mode) for mode in ("bilinear", "bicubic")]),
    (LINE, [nn.Conv1d(6, 4, 3), nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(4), nn.Upsample(scale_factor=1.7)]),
    (LINE, [nn.BatchNorm1d(6)]),
    (CUBE, [nn.Conv3d(3, 2, 3), nn.MaxPool3d(2), nn.AvgPool3d(2), nn.Upsample(scale_factor=1.7)]),
    (WORDS, [nn.GRU(8, 5), nn.GRU(8, 5, batch_first=True), nn.GRU(8, 5, bidirectional=True)]),
    (WORDS, [nn.LSTM(8, 5), nn.RNN(8, 5)]),
    (WORDS, [nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation) for activation in ("relu", "gelu")]),
    (LABEL.view(4, 2), [nn.Embedding(20, 5), nn.Embedding(20, 5, padding_idx=3), nn.EmbeddingBag(20, 5)]),
]  # fmt: skip


def begins_before(x):
    y = x * 1
    y[:, -16:2] = y[:, -9:2] * 2
    return y[:, -16:]


FUNCTIONS = {
    "cross_entropy": (F.cross_entropy, A, IGNORED),
    "cross_entropy, smoothed": (lambda x, y: F.cross_entropy(x, y, label_smoothing=0.2), A, IGNORED),
    "cross_entropy, probabilities": (lambda x, y: F.cross_entropy(x, y.softmax(1)), A, B),
    **{loss.__name__: (loss, A, B) for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, torch.cdist)},
    "binary_cross_entropy": (F.binary_cross_entropy, P, Q),
    "with_logits": (F.binary_cross_entropy_with_logits, A, Q),
    "kl_div": (lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), A, B),
    "gaussian_nll": (F.gaussian_nll_loss, A, B, P),
    "triplet": (F.triplet_margin_loss, A, B, P),
    "multi_margin": (F.multi_margin_loss, A, LABEL),
    "cosine": (F.cosine_similarity, A, B),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), WORDS),
    "grid_sample": (lambda x, y: F.grid_sample(x, y.tanh(), align_corners=False), IMAGE, torch.randn(4, 5, 5, 2)),
    "slices": (lambda x: x[1::2, ::2], A),
    "slices that begin before": (begins_before, A),
    "sort": (lambda x: x.sort(1)[0], A),
    "topk": (lambda x: x.topk(3, 1)[0], A),
    "mask": (lambda x: x[x > 0], A),
    "index": (lambda x: x[LABEL[:3].to(x.device)], A),
    "index_add": (lambda x, y: x.index_add(0, LABEL[:3].to(x.device), y[:3]), A, B),
    "variance": (lambda x: x.var(0), A),
    "cumsum": (lambda x: x.cumsum(1), A),
    "logsumexp": (lambda x: x.logsumexp(1), A),
    "einsum": (lambda x, y: torch.einsum("bi,bj->ij", x, y), A, B),
    "norm": (lambda x: x.norm(dim=1), A),
    "power": (lambda x: x.abs() ** 1.7, A),
    "elu_": (lambda x: F.elu_(x * 2), A),
}  # fmt: skip


def computed(function, inputs, parameters, device):
    inputs = [each.detach().clone().to(device).requires_grad_(each.is_floating_point()) for each in inputs]
    output = function(*inputs)
    while isinstance(output, tuple):
        output = output[0]
    (output * torch.linspace(-1, 2, output.numel()).reshape(output.shape).to(device)).sum().backward()
    gradients = [each.grad for each in [*inputs, *parameters] if each.grad is not None]
    return [value.detach().cpu() for value in [output, *gradients]]


def differ(ours, theirs):
    pairs = zip(ours, theirs, strict=True)
    return any(a.shape != b.shape or (a - b).norm() > 2e-5 * max(a.norm(), 1e-3) for a, b in pairs)


cases = {name: (function, [], inputs) for name, (function, *inputs) in FUNCTIONS.items()}
for given, layers in LAYERS:
    cases |= {str(layer): (layer, list(layer.parameters()), [given]) for layer in layers}
for name, (function, parameters, inputs) in cases.items():
    expected = computed(function, inputs, parameters, "cpu")
    if parameters:
        function = copy.deepcopy(function)
        function.zero_grad()
        function.to(torch_xla.device())
        parameters = list(function.parameters())
    if differ(expected, computed(function, inputs, parameters, torch_xla.device())):
        print("differs:", name)


def dropped(x):
    return F.dropout(x.exp(), 0.5)


found = []
for compute in (dropped, lambda x: checkpoint(dropped, x, use_reentrant=False)):
    torch_xla.manual_seed(0)
    found.append(computed(compute, [ROW], [], torch_xla.device()))
if differ(*found):
    print("differs: dropout that is drawn again")
print(len(cases) + 1)
