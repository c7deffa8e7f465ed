"""Composes random training scripts from parts, as people combine them: loader, model, loss, loop and shape of the file.

Every script computes in float64 and keeps `history`, the parameters after each optimizer step, so that a conversion
can be held against it to 1e-11.
"""

from __future__ import annotations

import random
from textwrap import dedent, indent

HEAD = """\
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau, StepLR
from torch.utils.data import (
    BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, SubsetRandomSampler, TensorDataset,
    WeightedRandomSampler, random_split,
)

torch.set_default_dtype(torch.float64)
SAMPLES, BATCH, EPOCHS = {samples}, {batch}, 2
history = []


class Rows(Dataset):
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(SAMPLES, 6, generator=g)
        self.y = (self.x[:, :3] + 0.5 * torch.randn(SAMPLES, 3, generator=g)).argmax(1)

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Stream(IterableDataset):
    def __iter__(self):
        rows = Rows(1)
        return iter([rows[i] for i in torch.randperm(SAMPLES)])


def pad(samples):
    return torch.stack([x for x, _ in samples]), torch.tensor([int(y) for _, y in samples])


def record(*models):
    history.append(torch.cat([p.detach().flatten().clone() for m in models for p in m.parameters()]))

"""

LOADERS = {
    "shuffled": "DataLoader(Rows(1), batch_size=BATCH, shuffle=True)",
    "in_order": "DataLoader(Rows(1), BATCH)",
    "drop_last": "DataLoader(Rows(1), batch_size=BATCH, shuffle=True, drop_last=SAMPLES > BATCH)",
    "tensors": "DataLoader(TensorDataset(Rows(1).x, Rows(1).y), batch_size=BATCH, shuffle=True)",
    "collate": "DataLoader(Rows(1), batch_size=BATCH, shuffle=True, collate_fn=pad)",
    "weighted": "DataLoader(Rows(1), BATCH, sampler=WeightedRandomSampler(torch.rand(SAMPLES), SAMPLES))",
    "subset": "DataLoader(Rows(1), batch_size=BATCH, sampler=SubsetRandomSampler(range(0, SAMPLES, 2)))",
    "batch_sampler": "DataLoader(Rows(1), batch_sampler=BatchSampler(RandomSampler(Rows(1)), BATCH, False))",
    "split": "DataLoader(random_split(Rows(1), [SAMPLES - 3, 3])[0], batch_size=BATCH, shuffle=True)",
    "kwargs": "DataLoader(Rows(1), **dict(batch_size=BATCH, shuffle=True))",
    "stream": "DataLoader(Stream(), batch_size=BATCH)",
}

# What gives the batches of an epoch without a DataLoader.
IN_MEMORY = {
    "permuted": """\
        rows = Rows(1)
        order = torch.randperm(SAMPLES)
        for start in range(0, SAMPLES, BATCH):
            x, y = rows.x[order[start:start + BATCH]], rows.y[order[start:start + BATCH]]
        """,
    "numpy": """\
        rows = Rows(1)
        order = np.random.permutation(SAMPLES)
        for part in np.array_split(order, max(1, SAMPLES // BATCH)):
            x, y = rows.x[part], rows.y[part]
        """,
    "offsets": """\
        rows = Rows(1)
        for _ in range(max(2, SAMPLES // BATCH)):
            picked = torch.randint(SAMPLES, (BATCH,))
            x, y = rows.x[picked], rows.y[picked]
        """,
}

MODELS = {
    "mlp": ("self.net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))", "return self.net(x)"),
    "batch_norm": (
        "self.net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))",
        "return self.net(x)",
    ),
    "layer_norm": ("self.a, self.n, self.b = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)",
                   "return self.b(self.n(torch.relu(self.a(x))))"),
    "dropout": ("self.a, self.d, self.b = nn.Linear(6, 8), nn.Dropout(0.3), nn.Linear(8, 3)",
                "return self.b(self.d(torch.tanh(self.a(x))))"),
    "noise": ("self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)",
              "h = self.a(x)\nreturn self.b(torch.tanh(h + 0.1 * torch.randn_like(h)))"),
    "recurrent": ("self.rnn, self.out = nn.GRU(2, 5, batch_first=True), nn.Linear(5, 3)",
                  "return self.out(self.rnn(x.view(-1, 3, 2))[0][:, -1])"),
    "attention": ("self.q, self.v, self.out = nn.Linear(2, 4), nn.Linear(2, 4), nn.Linear(4, 3)",
                  "t = x.view(len(x), 3, 2)\n"
                  "w = F.softmax(self.q(t) @ self.q(t).transpose(1, 2), dim=-1)\n"
                  "return self.out((w @ self.v(t)).mean(1))"),
    "tied": ("self.a, self.o = nn.Linear(6, 6), nn.Linear(6, 3)\n"
             "self.b = nn.Linear(6, 6)\nself.b.weight = self.a.weight",
             "return self.o(torch.tanh(self.b(torch.tanh(self.a(x)))))"),
    "unused": ("self.a, self.b, self.c = nn.Linear(6, 8), nn.Linear(8, 3), nn.Linear(2, 2)",
               "return self.b(torch.sigmoid(self.a(x)))"),
    "convolution": ("self.c, self.o = nn.Conv1d(1, 4, 3, padding=1), nn.Linear(24, 3)",
                    "return self.o(torch.relu(self.c(x.unsqueeze(1))).flatten(1))"),
    "frozen": ("self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)\nself.a.requires_grad_(False)",
               "return self.b(torch.tanh(self.a(x)))"),
    "batch_mean": ("self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)",
                   "h = torch.tanh(self.a(x))\nreturn self.b(h - h.mean(0, keepdim=True))"),
    "counter": ("self.a = nn.Linear(6, 3)\nself.register_buffer('seen', torch.zeros(()))",
                "if self.training:\n    self.seen += len(x)\nreturn self.a(x)"),
}  # fmt: skip

OWN_LOSSES = {
    "mean": "F.cross_entropy(out, y)",
    "sum": "F.cross_entropy(out, y, reduction='sum')",
    "ignored": "F.cross_entropy(out, y, ignore_index=1)",
    "by_hand": "-(F.log_softmax(out, 1).gather(1, y[:, None]).squeeze(1)).mean()",
    "masked": "((out - F.one_hot(y, 3)) ** 2 * (y > 0)[:, None]).sum() / ((y > 0).sum() + 1)",
    "regularised": "F.cross_entropy(out, y) + 0.01 * sum(p.pow(2).sum() for p in self.parameters())",
}

LOSSES = {
    "mean": "F.cross_entropy(out, y)",
    "module": "nn.CrossEntropyLoss()(out, y)",
    "nll": "F.nll_loss(F.log_softmax(out, dim=1), y)",
    "sum": "0.1 * F.cross_entropy(out, y, reduction='sum')",
    "sum_over_batch": "F.cross_entropy(out, y, reduction='sum') / BATCH",
    "sum_over_length": "F.cross_entropy(out, y, reduction='none').sum() / len(x)",
    "weighted": "F.cross_entropy(out, y, weight=torch.tensor([1.0, 2.0, 5.0]))",
    "ignored": "F.cross_entropy(out, y, ignore_index=2)",
    "smoothed": "F.cross_entropy(out, y, label_smoothing=0.1)",
    "squared": "F.mse_loss(out, F.one_hot(y, 3).to(out.dtype))",
    "binary": "F.binary_cross_entropy_with_logits(out[:, 0], (y == 0).to(out.dtype))",
    "masked": "((out ** 2).sum(1) * (y > 0)).sum() / (y > 0).sum().clamp(min=1)",
    "regularised": "F.cross_entropy(out, y) + 0.01 * sum(p.abs().sum() for p in model.parameters())",
    "contrastive": "F.cross_entropy(F.normalize(out, dim=1) @ F.normalize(out, dim=1).T, y % len(x))",
    "batch_statistics": "F.cross_entropy(out, y) + 0.1 * out.mean(0).pow(2).sum() + out.std()",
    "pairs": "torch.pdist(torch.cat([out, out.flip(0)])).clamp(max=2.0).mean() + out.pow(2).mean()",
    "hard_examples": "F.cross_entropy(out, y, reduction='none').topk(max(1, len(x) // 2)).values.mean()",
    "divergence": "F.kl_div(F.log_softmax(out, 1), F.softmax(x[:, :3], 1), reduction='batchmean')",
    "detached": "F.cross_entropy(out, y) * (1 + out.detach().abs().max())",
}

# One batch: from `loss` to a step. `number` counts the batches of the epoch.
STEPS = {
    "plain": """\
        opt.zero_grad()
        loss.backward()
        opt.step()
        record(model)
        """,
    "clipped": """\
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        record(model)
        """,
    "accumulated": """\
        (loss / 2).backward()
        if number % 2 == 0:
            opt.step()
            opt.zero_grad()
            record(model)
        """,
    "two_backwards": """\
        opt.zero_grad()
        loss.backward(retain_graph=True)
        out.pow(2).mean().backward()
        opt.step()
        record(model)
        """,
    "two_forwards": """\
        other = model(x.flip(1){labels})
        opt.zero_grad()
        loss.backward()
        {other}.backward()
        opt.step()
        record(model)
        """,
    "skipped": """\
        if not torch.isfinite(loss) or loss.item() > 1e6:
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
        record(model)
        """,
    "unfrozen": """\
        opt.zero_grad()
        first = next(iter(model.parameters()))
        first.requires_grad_(number % 2 == 1)
        loss.backward()
        first.requires_grad_(True)
        opt.step()
        record(model)
        """,
}

SCHEDULES = {
    "none": ("", "", ""),
    "steps": ("schedule = StepLR(opt, 1, 0.5)", "", "schedule.step()"),
    "one_cycle": ("schedule = OneCycleLR(opt, 0.1, total_steps=EPOCHS * (SAMPLES + 1))", "schedule.step()", ""),
    "plateau": ("schedule = ReduceLROnPlateau(opt, patience=0)", "", "schedule.step(total)"),
}

ADVERSARIAL = """\
generator = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 6))
critic = nn.Sequential(nn.Linear(6, 8), {norm}nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt_g = torch.optim.SGD(generator.parameters(), lr=0.05)
opt_c = torch.optim.SGD(critic.parameters(), lr=0.05{momentum})
for epoch in range(EPOCHS):
    for number, (x, y) in enumerate({batches}):
        noise = torch.randn({noise}, 2)
        fake = generator(noise)
        loss = {critic_loss}
        opt_c.zero_grad()
        loss.backward()
        opt_c.step()
        if number % 2 == 0:
            made = {again}
            fooled = {generator_loss}
            opt_g.zero_grad()
            fooled.backward()
            opt_g.step()
        record(generator, critic)
    print('epoch %d loss %.6f' % (epoch, loss.item()))
"""

CRITIC_LOSSES = {
    "bce": (
        "F.binary_cross_entropy_with_logits(critic(x), torch.ones(len(x), 1)) "
        "+ F.binary_cross_entropy_with_logits(critic(fake.detach()), torch.zeros(len(fake), 1))",
        "F.binary_cross_entropy_with_logits(critic(made), torch.ones(len(made), 1))",
    ),
    "wasserstein": ("critic(fake.detach()).mean() - critic(x).mean()", "-critic(made).mean()"),
    "relativistic": (
        "F.softplus(-(critic(x) - critic(fake.detach()).mean())).mean()",
        "F.softplus(-(critic(made) - critic(x).detach().mean())).mean()",
    ),
    "least_squares": (
        "((critic(x) - 1) ** 2).mean() + (critic(fake.detach()) ** 2).mean()",
        "0.5 * torch.mean((critic(made) - 1) ** 2)",
    ),
}


# Samples and batch sizes of which no loader leaves a batch of one, which batch normalisation refuses.
ROOMY = [(23, 8), (24, 8)]


def script(seed: int) -> str:
    """A training script: the same for the same seed."""
    draw = random.Random(seed)
    samples, batch = draw.choice([*ROOMY, (17, 8), (9, 16), (25, 6), (13, 4), (21, 5)])
    head = HEAD.format(samples=samples, batch=batch)
    seeds = draw.choice(["torch.manual_seed(7)\n", "torch.manual_seed(7)\nnp.random.seed(7)\nrandom.seed(7)\n"])
    loader = LOADERS[draw.choice(list(LOADERS))]
    if draw.random() < 0.2:
        return head + _shaped(draw, seeds + f"loader = {loader}\n" + _adversarial(draw, (samples, batch) in ROOMY))
    if draw.random() < 0.25:
        setup, batches = "", dedent(IN_MEMORY[draw.choice(list(IN_MEMORY))])
    else:
        setup, batches = f"loader = {loader}\n", "for x, y in loader:\n"
    own_loss = draw.random() < 0.25
    model = _model(draw, own_loss, (samples, batch) in ROOMY)
    return head + model + _shaped(draw, seeds + setup + _training(draw, batches, own_loss))


def _model(draw: random.Random, own_loss: bool, roomy: bool) -> str:
    init, forward = MODELS[draw.choice([name for name in MODELS if roomy or name != "batch_norm"])]
    lines = [
        "class Net(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        indent(init, " " * 8),
        "",
    ]
    if own_loss:
        loss = OWN_LOSSES[draw.choice(list(OWN_LOSSES))]
        lines += ["    def compute(self, x):", indent(forward, " " * 8), "", "    def forward(self, x, y):"]
        lines += ["        out = self.compute(x)", f"        return out, {loss}"]
    else:
        lines += ["    def forward(self, x):", indent(forward, " " * 8)]
    return "\n".join(lines) + "\n\n\n"


def _training(draw: random.Random, batches: str, own_loss: bool) -> str:
    build, after_step, after_epoch = SCHEDULES[draw.choice(list(SCHEDULES))]
    momentum = draw.choice(["", ", momentum=0.9", ", weight_decay=0.01"])
    forward = "out, loss = model(x, y)" if own_loss else f"out = model(x)\nloss = {LOSSES[draw.choice(list(LOSSES))]}"
    step = dedent(STEPS[draw.choice(list(STEPS))]).format(
        labels=", y" if own_loss else "", other="other[1]" if own_loss else "F.cross_entropy(other, y)"
    )
    body = forward + "\n" + step + (after_step + "\n" if after_step else "") + "total += loss.item()\nnumber += 1\n"
    lines = ["model = Net()", f"opt = torch.optim.SGD(model.parameters(), lr=0.05{momentum})", build]
    lines += [
        "for epoch in range(EPOCHS):",
        "    model.train()",
        "    total, number = 0.0, 0",
        indent(batches, " " * 4).rstrip(),
    ]
    lines += [indent(body, " " * 8).rstrip(), indent(_evaluation(draw, own_loss), " " * 4).rstrip()]
    lines += [f"    {after_epoch}" if after_epoch else "", "    print('epoch %d loss %.6f' % (epoch, total))"]
    return "\n".join(line for line in lines if line) + "\n"


def _evaluation(draw: random.Random, own_loss: bool) -> str:
    if draw.random() < 0.5:
        return ""
    call = "model.compute(held_out.x)" if own_loss else "model(held_out.x)"
    stop = draw.choice(["", "    if right > 0.99 * SAMPLES:\n        break\n"])
    return (
        "held_out = Rows(2)\nmodel.eval()\nwith torch.no_grad():\n"
        f"    right = ({call}.argmax(1) == held_out.y).sum().item()\n    print('right', right)\n{stop}"
    )


def _adversarial(draw: random.Random, roomy: bool) -> str:
    critic_loss, generator_loss = CRITIC_LOSSES[draw.choice(list(CRITIC_LOSSES))]
    return ADVERSARIAL.format(
        norm=draw.choice(["", "nn.BatchNorm1d(8), " if roomy else "", "nn.Dropout(0.2), "]),
        momentum=draw.choice(["", ", momentum=0.5"]),
        batches="loader",
        noise=draw.choice(["len(x)", "x.size(0)", "BATCH"]),
        critic_loss=critic_loss,
        again=draw.choice(["fake", "generator(noise)", "generator(torch.randn(len(x), 2))"]),
        generator_loss=generator_loss,
    )


def _shaped(draw: random.Random, body: str) -> str:
    """The file: everything at module level, in a guarded main(), or in a class."""
    shape = draw.choice(["module", "main", "trainer"])
    if shape == "module":
        return body
    if shape == "main":
        return f"def main():\n{indent(body, ' ' * 4)}\n\nif __name__ == '__main__':\n    main()\n"
    inside = indent(body, " " * 8)
    return f"class Trainer:\n    def fit(self):\n{inside}\n\nif __name__ == '__main__':\n    Trainer().fit()\n"
