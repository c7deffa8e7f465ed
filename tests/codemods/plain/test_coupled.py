"""Models that couple the samples of a batch: a rank that has a part of it would compute something else."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, plain, refusals, undivided

MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Linear(8, 3)
        self.p = nn.Parameter(torch.zeros(64, 8))
        self.register_buffer("c", torch.zeros(8))
        self.norm = nn.GroupNorm(2, 8)
        self.rows = nn.Sequential(nn.Linear(8, 8), nn.Softmax(0))

    def forward(self, x):
        h = torch.tanh(self.a(x))
        {body}
        return self.b(h)
"""
IN_LOOP = """s = torch.zeros(8)
        for row in h:
            s = s + row
        h = h - s"""
CARRIED = """out, s = [], 0
        for i in range(len(h)):
            s = h[i] + s
            out.append(s)
        h = torch.stack(out)"""


def of_model(body: str) -> list[str]:
    """Why a script is not divided whose model has this line in its forward."""
    head = HEAD.replace("model = nn.Linear(4, 3)\n", MODEL.format(body=body) + "model = Net()\n")
    return undivided(plain(head + LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")))


@pytest.mark.parametrize(
    "body",
    [
        "h = h - torch.from_numpy(h.detach().numpy().mean(0))",
        "h = h + (h * (x[:, :1] > 0)).sum(0) / (x[:, :1] > 0).sum()",
        "h = h - h[x[:, 0] > 0].mean(0)",
        "h = h / h.size(0) ** 0.5",
        "h = h + torch.linspace(0, 1, len(h)).unsqueeze(1)",
        "h = h + self.p[:len(h)]",
        "h = torch.ones(len(h), len(h)) @ h",
        "h = h @ torch.tensordot(h, h, dims=([0], [0]))",
        "h = torch.inner(h, h) @ h",
        "h = h - sum(h)",
        "h = h + h.select(0, 0)",
        "h = torch.cat(torch.tensor_split(h, 2)[::-1])",
        "h = torch.cat([p * 2 for p in torch.split(h, h.size(0) // 2)])",
        "h = h * torch.bincount((x[:, 0] > 0).long(), minlength=8)",
        "h = h + torch.zeros(8, 8).index_add(0, (x[:, 0] > 0).long(), h)[0]",
        "h = h.logcumsumexp(0)",
        "h = h - h.quantile(0.5, dim=0)",
        "h = torch.var_mean(h, dim=0)[1] + h",
        "h = h.movedim(0, 1).softmax(1).movedim(0, 1)",
        "h = self.norm(h.t().unsqueeze(0))[0].t()",
        "h = F.avg_pool1d(h.t().unsqueeze(0), 3, 1, 1)[0].t()",
        "h = h - h.mean(dim=tuple(range(h.dim() - 1)))",
        "h = self.rows(h)",
        "m = torch.zeros(8); torch.mean(h.detach(), 0, out=m); h = h - m",
        "h = torch.utils.checkpoint.checkpoint(lambda z: z - z.mean(0), h)",
        "h = h + torch.arange(len(h)).float()[:, None]",
        "h = h * (torch.arange(h.size(0)) % 2).view(-1, 1)",
        "h = h.view(len(h) // 2, -1).repeat_interleave(2, 0)[:, :8]",
        "h = h.t().contiguous().view(-1, 8)",
        "h = F.scaled_dot_product_attention(h, h, h)",
        "h = torch.bmm(h[None], h.t()[None])[0] @ h",
        "h = h + F.unfold(h[None, None], (3, 1), padding=(1, 0)).mean()",
        "h = h + torch.take(h, h.argmax(1)).unsqueeze(1)",
        "h = h.clone(); h[::2] = 0",
        "self.c.data = 0.9 * self.c + 0.1 * h.detach().mean(0); h = h - self.c",
        "i = torch.arange(len(h)); h = h + h[(i + 1) % len(i)]",
        "h = h + h[torch.arange(len(h)).roll(1)]",
        "m = h.mm(self.p[:8]).unsqueeze(0); h = h + torch.exp(-(m - m.permute(1, 0, 2)).abs()).sum(0)",
        IN_LOOP,
        CARRIED,
    ],
)
def test_samples_that_a_model_couples(body: str) -> None:
    assert of_model(body)


@pytest.mark.parametrize(
    "body",
    [
        "h = h - h.mean(1, keepdim=True)",
        "h = h / h.size(1) ** 0.5",
        "h = h[torch.arange(len(h)), :]",
        "h = torch.stack([row * 2 for row in h])",
        "out = []\n        for i in range(len(h)):\n            out.append(h[i] * 2)\n        h = torch.stack(out)",
        "h = torch.var_mean(h, dim=1)[1].unsqueeze(1) + h",
        "h = torch.outer(h[:, 0], torch.ones(8))",
        "h = h + torch.ones(len(h), 8)",
        "h = self.norm(h)",
        "h = torch.utils.checkpoint.checkpoint(lambda z: z - z.mean(1, keepdim=True), h)",
        "h = self.a(x.view(-1, 2, 4).flatten(0, 1)).view(len(h), -1)[:, :8]",
        "h = h * h[torch.arange(len(h)), h.argmax(1)].unsqueeze(1)",
        "i = torch.arange(h.size(0)).unsqueeze(1); h = h + h[i, h.topk(3, 1)[1]].sum(1, keepdim=True)",
        "h = h + torch.arange(h.size(1))",
        "h = h.mm(self.p[:8])",
        "h = torch.max(h, 1, keepdim=True)[0] + h",
        "f = x.view(-1, 2); f = f.view(len(f) // 2, -1); h = h + f[:, :1]",
    ],
)
def test_samples_that_a_model_leaves_apart(body: str) -> None:
    assert not of_model(body)


def test_tensors_that_are_stacked_lie_in_front_of_the_samples() -> None:
    assert not of_model("h = torch.stack([h, h * 2]).mean(0)")
    assert of_model("h = torch.stack([h, h * 2]).mean(1)[:1] + h")


def test_a_hook_that_keeps_what_a_model_computes() -> None:
    hook = "seen = []\nmodel.register_forward_hook(lambda module, given, out: seen.append(out.mean().item()))\n"
    loop = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")
    assert refusals(plain(HEAD + hook + loop + "print(seen[-1])\n"))


def test_the_gradient_of_an_output_is_that_of_a_mean() -> None:
    shown = "optimizer.step()\n        print(out.grad.norm().item())"
    loss = "F.cross_entropy(out := model(x), y); out.retain_grad()"
    assert refusals(plain(HEAD + LOOP.format(loss=loss, step=shown)))


def test_what_a_library_makes_is_given_numbers_of_all_ranks() -> None:
    head = HEAD + "from functools import partial\nshow = partial(print, 'loss')\n"
    loop = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()\n        show(loss.item())")
    assert "show(mean_over_ranks(loss.item()))" in plain(head + loop).code


@pytest.mark.parametrize("attribute", ["weight = torch.rand(3)", "ignore_index = 2"])
def test_a_loss_that_gets_weights_later(attribute: str) -> None:
    loop = LOOP.format(loss="criterion(model(x), y)", step="optimizer.step()")
    begin = f"{HEAD}criterion = nn.CrossEntropyLoss()\n"
    assert undivided(plain(f"{begin}criterion.{attribute}\n{loop}")) and not undivided(plain(begin + loop))


def test_steps_with_one_sample_after_the_other() -> None:
    body = """\
for x, y in train_loader:
    for one, label in zip(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(one[None]), label[None]).backward()
        optimizer.step()
"""
    assert refusals(plain(HEAD + body))


@pytest.mark.parametrize("change", ["x[0] = 0", "x[:2] = 0", "x[-1, 2] = 1"])
def test_some_samples_of_a_batch_that_are_changed(change: str) -> None:
    loop = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")
    assert refusals(plain(HEAD + loop.replace("        loss =", f"        {change}\n        loss =")))


def test_a_feature_of_all_samples_that_is_changed() -> None:
    loop = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")
    assert not refusals(plain(HEAD + loop.replace("        loss =", "        x[:, 0] = 0\n        loss =")))
