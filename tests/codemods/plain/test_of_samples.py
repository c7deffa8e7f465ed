"""What is kept by the samples of a rank alone: sets, dicts by key, the last batch, gradients to begin with."""

from __future__ import annotations

import pytest

from .test_followed import HEAD, notes, plain, refusals, training

EACH = HEAD.replace("torch.randint(3, (64,)))", "torch.randint(3, (64,)), torch.arange(64))", 1)
KEEPING = """\
for x, y, place in train_loader:
    losses = F.cross_entropy(model(x), y, reduction="none")
    loss = losses.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {keeps}
print({shown})
"""


@pytest.mark.parametrize(
    ("made", "keeps", "shown"),
    [
        ("{}", "for k, v in zip(place.tolist(), losses.tolist()): kept[k] = v", "len(kept)"),
        ("{}", "for k, v in zip(place.tolist(), losses.tolist()): kept[k] = v", "sum(kept.values())"),
        ("set()", "for k in place.tolist(): kept.add(k)", "len(kept)"),
        ("set()", "kept.update(place.tolist())", "len(kept)"),
    ],
)
def test_what_each_rank_keeps_of_its_own_samples_is_no_number_of_all(made: str, keeps: str, shown: str) -> None:
    assert refusals(plain(f"{EACH}kept = {made}\n" + KEEPING.format(keeps=keeps, shown=shown)))


@pytest.mark.parametrize("shown", ["len(x)", "out.sum().item()", "out.argmax(1).tolist()"])
def test_the_last_batch_of_an_evaluation_is_no_rank_s(shown: str) -> None:
    loop = "with torch.no_grad():\n    for x, y in test_loader:\n        out = model(x)\n"
    result = plain(training(after=f"{loop}        total += len(x)\nprint(total, {shown})\n"))
    assert not refusals(result)
    assert "it is of the last batch alone" in " ".join(notes(result))
    assert f"print(total, {shown})" in result.code


def test_a_gradient_to_begin_with_is_that_of_the_whole_batch() -> None:
    weighed = training().replace("loss.backward()", "loss.backward({})")
    size = plain(weighed.format("torch.tensor(1.0 / len(x))"))
    assert "loss.backward(torch.tensor(1.0 / (len(x) * dist.get_world_size())))" in size.code
    assert "loss.backward(whole_batch(model(x)).max())" in plain(weighed.format("model(x).max()")).code
    for same in ("torch.ones_like(loss)", "torch.tensor(0.5)", "retain_graph=True"):
        result = plain(weighed.format(same))
        assert not refusals(result)
        assert f"loss.backward({same})" in result.code


NAMED = """\
class Named(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, at):
        return {"image": torch.rand(4), "label": at % 3, "name": f"{at}.png"}


"""


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("x[1]", "whole_batch(x)[1]"),
        ("y[1].item()", "whole_batch(y)[1].item()"),
        ("x[1].mean()", "whole_batch(x)[1].mean()"),
        ("x[0:2]", "whole_batch(x)[0:2]"),
        ("x[::2]", "whole_batch(x)[::2]"),
        ("y[-1]", "whole_batch(y)[-1]"),
        ("x[random.randint(0, 3)]", "whole_batch(x)[random.randint(0, 3)]"),
        ("x[(y > 0).sum().item()]", "whole_batch(x)[sum_over_ranks((y > 0).sum().item())]"),
    ],
)
def test_the_first_sample_is_that_of_the_batch_of_all_ranks(shown: str, expected: str) -> None:
    result = plain(training(step=f"print({shown})"))
    assert not refusals(result)
    assert f"print({expected})" in result.code
    assert "all_gather_object" not in result.code


@pytest.mark.parametrize(
    "shown", ["x[0]", "y[0].item()", "x[0].mean()", "x[0, :2]", "x[0][1]", "x[:1]", "x[0:1]", "x[:1, 2]"]
)
@pytest.mark.parametrize(
    "step",
    ["print({shown})", "print(1, {shown}, sep=' ')", "torch.save({shown}, 'x.pt')", "writer.add_scalar('x', {shown})"],
)
def test_the_first_sample_of_all_is_that_of_rank_0_where_it_shows_it(step: str, shown: str) -> None:
    head = "from torch.utils.tensorboard import SummaryWriter\n\nwriter = SummaryWriter()\n" if "writer" in step else ""
    source = training(step=step.format(shown=shown)).replace("train_loader =", f"{head}train_loader =", 1)
    result = plain(source)
    assert not refusals(result) and "whole_batch" not in result.code
    assert step.format(shown=shown) in result.code


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("if x[0].sum() > 1: optimizer.step()", "if whole_batch(x)[0].sum() > 1:"),
        ("best = max(best, x[0].sum().item())", "whole_batch(x)[0].sum().item()"),
        ("print(x[0], file=open('x', 'a'))", "whole_batch(x)[0]"),
    ],
)
def test_the_first_sample_by_which_ranks_decide_is_sent_to_all(step: str, expected: str) -> None:
    result = plain(training(step=step).replace("for epoch", "best = 0\nfor epoch", 1))
    assert refusals(result) or expected in result.code or "if dist.get_rank() == 0" in result.code


@pytest.mark.parametrize("shown", ['batch["name"][1]', 'batch["name"][:2]', 'batch["name"]'])
def test_texts_of_a_batch_are_brought_together_as_objects(shown: str) -> None:
    source = training(step=f"print({shown})").replace("for x, y in train_loader", "for batch in train_loader")
    source = source.replace("model(x), y", 'model(batch["image"]), batch["label"]')
    head, loader, rest = source.partition("train_loader = DataLoader(")
    result = plain(head + NAMED + "train_set = Named()\n" + loader + rest)
    assert not refusals(result)
    gathered = shown.replace('batch["name"]', 'whole_batch(batch["name"])')
    assert f"print({gathered})" in result.code
    assert "dist.all_gather_object(parts, value)" in result.code
    assert plain(result.code).code == result.code


VIEWS = """\
class Views(torch.utils.data.Dataset):
    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return (self.images[i] + 1, self.images[i] - 1), 0


train_set = Views(torch.rand(64, 4))
"""


def test_two_views_of_each_image_are_no_samples() -> None:
    loss = "F.mse_loss(model(x[0]), model(x[1]))"
    head, loader, rest = training(loss).partition("train_loader = DataLoader(")
    result = plain(head + VIEWS + loader + rest)
    assert not refusals(result)
    assert "ddp_model(x[0])" in result.code
    assert refusals(plain(training(loss)))  # of tensors, those are the first two samples


NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x)


model = Net()
"""


@pytest.mark.parametrize(
    ("keeps", "code"),
    [
        ("worst = losses.argmax().item(); print(x[worst])", "print(whole_batch(x)[worst])"),
        ("top = losses.topk(2)[1]; print(x[top])", "print(whole_batch(x)[top])"),
        ("print(x[losses.argmax()])", ""),
    ],
)
def test_a_sample_that_is_found_among_all(keeps: str, code: str) -> None:
    """It was taken of a rank's own samples, by its place among all."""
    head = EACH.replace("model = nn.Linear(4, 3)\n", NET)
    result = plain(head + KEEPING.format(keeps=keeps, shown="1"))
    assert code in result.code and bool(refusals(result)) is not bool(code)
