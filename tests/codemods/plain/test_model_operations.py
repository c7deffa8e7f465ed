"""What a model makes of its samples by torch's operations: by their number, by their places, over all of them."""

from __future__ import annotations

import pytest

from .test_followed import plain, refusals
from .test_models import of_model


@pytest.mark.parametrize(
    "body",
    [
        "h = h.mul(len(h))",
        "h = torch.div(h, h.size(0))",
        "h = h.clamp(max=len(h) / 20)",
        "h = torch.where(h > 0, h, 1 / len(h))",
        "h = h + torch.full_like(h, len(h))",
        "h = h + h.new_full((len(h), 6), float(len(h)))",
        "h = h + torch.tensor(len(h) / 9)",
    ],
)
def test_the_number_of_a_ranks_samples_goes_into_a_model(body: str) -> None:
    assert refusals(plain(of_model(body)))


@pytest.mark.parametrize(
    "body",
    [
        "h = torch.stack([h[i] * i for i in range(len(h))])",
        "h = torch.stack([row * i for i, row in enumerate(h)])",
        "out = torch.zeros_like(h)\nfor i in range(len(h)):\n    out[i] = h[i] * i\nh = out",
        "h = h[torch.cat([torch.arange(1, len(h)), torch.arange(1)])]",
        "h = h[torch.roll(torch.arange(len(h)), 1)]",
        "h = h + torch.tensor(list(range(len(h))))[:, None]",
        "h = h.clone()\nh[0] += 5.0",
        "h = h.clone()\nh[::2] *= 2",
    ],
)
def test_places_of_samples_go_into_a_model(body: str) -> None:
    assert refusals(plain(of_model(body)))


@pytest.mark.parametrize(
    "body",
    [
        "h = torch.msort(h)",
        "h = h * torch.dist(h, 2 * h)",
        "h = h + torch.trapezoid(h, dim=0)",
        "h = h.cumsum_(0)",
        "h = h.clone().triu_()",
        "h = h + F.linear(h, h).sum(1, keepdim=True)",
        "h = h + F.embedding(h.argmax(1) % 2, h)",
        "h = h + h[:, h.argmax(1) % 6].sum(1, keepdim=True)",
        "h = h + h[:, 0].argsort()[:, None]",
        "h = h + h.nanquantile(0.5, 0)",
        "h = h + torch.linalg.vector_norm(h, 2, 0)",
        "h = torch.fft.fft2(h.view(-1, 2, 3), dim=(0, 1)).real.flatten(1)",
        "h = h + h.view(-1, 2, 3).diagonal().sum()",
        "h = torch.stack([(h[k] * h).mean(0) for k in range(len(h))])",
        "rows = []\nfor k in range(len(h)):\n    rows.append((h[k] - h).abs().mean(0))\nh = torch.stack(rows)",
        "h = h + h.expand(2, -1, -1).softmax(1).mean(0)",
        "import numpy as np\nh = h[np.newaxis].softmax(1)[0]",
        "s = h.abs().sum()\nh = torch.stack(list(map(lambda row: row / s, h)))",
        "from functools import reduce\nh = h + reduce(torch.add, [row for row in h])",
        "h = torch.vmap(lambda column: column / column.sum(), in_dims=1, out_dims=1)(h)",
        "h = torch.vmap(lambda row: (row * h).mean(0))(h)",
        "at = h.norm(dim=1).topk(3)[1]\nm = torch.zeros(len(h))\nm[at] = 1\nh = h * m[:, None]",
        "t = h.view(-1, 2, 3).transpose(0, 1)\nh = h + t.reshape(-1, 2, 3).mean(1).repeat(1, 2)",
        "for d in range(2):\n    h = h.softmax(d)",
        "h = h.softmax(h.dim() - 2)",
        "h = h / h.std(dim=tuple(i for i in range(2) if i != 1))",
        "h = F.pad(h, (0, 0, 1, -1))",
        "h = h @ (h.adjoint() @ h)",
        "h = torch.linalg.multi_dot([h, h.t(), h])",
        "h = h.index_add(0, torch.zeros(len(h), dtype=torch.long), h)",
        "h = h.scatter_reduce(0, torch.zeros_like(h).long(), h, 'amax')",
        "h = torch.fft.irfftn(h)[:, :6]",
        "h = h * torch.select_copy(h, 0, 1)",
        "h = nn.Softmax(DIM)(h)",
        "h = nn.ZeroPad2d((0, 0, 1, -1))(h)",
        "h = nn.ReplicationPad2d((0, 0, 1, -1))(h[None])[0]",
        "h = nn.ChannelShuffle(2)(h[None])[0]",
        "h = nn.Softmax(**{'dim': 0})(h)",
        "h = nn.MultiheadAttention(6, 2, batch_first=True)(h, h, h)[0]",
    ],
)
def test_operations_over_samples(body: str) -> None:
    assert refusals(plain(of_model(body).replace("total = 0.0", "DIM = 0\ntotal = 0.0")))


@pytest.mark.parametrize(
    "body",
    [
        "h = h / h.norm(dim=tuple(range(1, h.dim())), keepdim=True)",
        "h = h.softmax(h.dim() - 1)",
        "h = F.pad(h, (1, 1, 0, 0))[:, :6]",
        "h = h.gather(1, h.argsort(1)) + torch.take_along_dim(h, h.argsort(1), 1)",
        "h = torch.zeros_like(h).scatter_add(1, h.argsort(1), h)",
        "h = F.gumbel_softmax(h, 0.5, True)",
        "h = nn.Softmax(-1)(h)",
        "h = nn.ZeroPad2d((0, 0, 1, -1))(h.view(-1, 1, 2, 3)).flatten(1)",
        "h = nn.ReflectionPad1d((1, -1))(h)",
        "h = h.mul(h.size(1)).div(6)",
        "h = torch.stack([h[i] * 2 for i in range(len(h))])",
        "h = torch.stack([row * 2 for i, row in enumerate(h)])",
        "h = torch.stack([h[i, h[i].argsort()] for i in range(len(h))])",
        "h = torch.stack(list(map(lambda row: row / row.sum(), h)))",
        "h = torch.vmap(lambda row: row / row.sum())(h)",
        "h = h[:, None].expand(-1, 2, -1).softmax(2).mean(1)",
        "rows = []\nfor k in range(len(h)):\n    rows.append(h[k] * h[k].abs().sum())\nh = torch.stack(rows)",
        "h = h[torch.arange(len(h))]",
        "h = h.clone()\nh[:, 0] += 5.0",
        "h = h.cumsum_(1)",
        "h = h.view(-1, 2, 3).triu_().flatten(1)",
        "h = h + torch.trapezoid(h, dim=1)[:, None]",
        "h = h + F.linear(h, self.second.weight.repeat(2, 1))",
        "h = h + h[:, [0] * 6]",
        "h = h + h.nanquantile(0.5, 1, True)",
        "h = h + torch.linalg.vector_norm(h, 2, 1, True)",
        "h = torch.fft.fft2(h.view(-1, 2, 3)).real.flatten(1)",
        "h = h.view(-1, 2, 3).movedim(2, 1).flatten(1)",
        "h = h + h.view(-1, 2, 3).diagonal(dim1=1, dim2=2).sum(1, keepdim=True)",
    ],
)
def test_operations_within_each_sample(body: str) -> None:
    assert not refusals(plain(of_model(body)))
