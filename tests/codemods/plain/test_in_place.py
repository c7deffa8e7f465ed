"""Tensors that a script fills anew for each batch, and changes in place."""

from __future__ import annotations

import pytest

from .test_followed import notes, plain, refusals, training, undivided

BUFFERS = """\
data = torch.FloatTensor(8, 4)
label = torch.FloatTensor(8)
for epoch in range(3):
    for x, y in train_loader:
        {fill}
        output = model({given})
        loss = F.binary_cross_entropy_with_logits(output[:, 0], label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
FILL = "data.resize_(x.size()).copy_(x)"
HEAD = training().partition("for epoch")[0]


def buffers(fill: str, given: str = "data", label: str = "label.resize_(x.size(0)).fill_(1)") -> str:
    """A script with tensors that are made once and filled in each step."""
    return HEAD + BUFFERS.format(fill=f"{fill}\n        {label}", given=given)


@pytest.mark.parametrize(
    "fill",
    [
        FILL,
        "data.resize_(x.size())\n        data.copy_(x)",
        "data.resize_as_(x).copy_(x)",
        "data.resize_(x.size(0), 4).normal_(0, 1)",
        f"{FILL}\n        data.mul_(2).add_(1)",
    ],
)
def test_buffers_that_get_the_size_of_the_batch_are_divided(fill: str) -> None:
    result = plain(buffers(fill))
    assert not refusals(result)
    assert "ddp_model(data)" in result.code
    assert "whole_batch" not in result.code


def test_a_variable_that_is_made_of_the_buffer_afterwards_is_followed() -> None:
    assert not refusals(plain(buffers(f"{FILL}\n        given = torch.autograd.Variable(data)", "given")))


@pytest.mark.parametrize(
    "fill",
    [
        "data.copy_(x)",  # of the script's own size
        "data.data.resize_(x.size()).copy_(x)",  # which leaves `data` as long as it was
        "data.data.resize_as_(x).copy_(x)",
        f"{FILL}\n        data.sub_(data.mean(0))",
        f"{FILL}\n        data[0].add_(data.sum(0))",
        f"{FILL}\n        data.data.mul_(data.std())",
        "data.resize_(8, 4).normal_(0, 1)",  # as many for each rank
    ],
)
def test_buffers_that_couple_samples_or_are_as_long_on_each_rank_are_refused(fill: str) -> None:
    assert undivided(plain(buffers(fill)))


def test_another_name_of_a_buffer_is_refused() -> None:
    source = buffers(FILL, "given").replace("for epoch", "given = torch.autograd.Variable(data)\nfor epoch", 1)
    assert refusals(plain(source))


def test_a_function_that_changes_its_argument_is_refused() -> None:
    helper = "def center(t):\n    t.sub_(t.mean(0))\n"
    source = buffers(f"{FILL}\n        center(data)").replace("for epoch", f"{helper}\nfor epoch", 1)
    assert refusals(plain(source))


@pytest.mark.parametrize(
    ("loss", "right"),
    [
        ('F.mse_loss(model(x)[:, 0], y.float(), reduction="sum").mul_(0.5)', True),
        ("torch.sum(model(x) ** 2).mul_(-0.5)", True),
        ("torch.sum(model(x) ** 2).div_(len(x))", True),
        ("torch.mean(model(x) ** 2).div_(len(x))", False),
    ],
)
def test_a_sum_that_nothing_else_holds_is_changed_in_place(loss: str, right: bool) -> None:
    assert bool(refusals(plain(training(loss)))) is not right


EVALUATED = """\
total = 0.0
for x, y in test_loader:
    {detaches}
    total += F.cross_entropy(out, y).item()
print(total / len(test_loader))
"""


@pytest.mark.parametrize(
    "detaches",
    [
        "out = model(x)\n    out.detach_()",
        "out = model(x).detach_()",
        "out = model(x)\n    out = out.detach_()",
        "out = model(x)\n    out.mean().detach_()",
    ],
)
def test_outputs_that_are_detached_in_place_are_divided(detaches: str) -> None:
    result = plain(training(after=EVALUATED.format(detaches=detaches)))
    assert not refusals(result) and not notes(result)
    assert "total = sum_over_ranks(total)" in result.code


def test_a_loss_that_is_detached_in_place_is_added_up() -> None:
    evaluates = "loss = F.cross_entropy(model(x), y)\n    loss.detach_()\n    out = model(x)"
    result = plain(training(after=EVALUATED.format(detaches=evaluates).replace("F.cross_entropy(out, y)", "loss")))
    assert not refusals(result) and not notes(result)


DETACHED = """\
other = nn.Linear(3, 3)
second = torch.optim.SGD(other.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in train_loader:
        {makes}
        F.cross_entropy(out, y).backward()
        optimizer.step()
        {detaches}
        F.cross_entropy(other({takes}), y).backward()
        second.step()
"""


@pytest.mark.parametrize(
    ("makes", "detaches", "takes", "refused"),
    [
        ("out = model(x)", "out.detach_()", "out", False),
        ("out = model(x)", "pass", "out.detach_()", False),
        ("out = model(x)", "pass", "out", True),  # DistributedDataParallel counts two passes as one
        ("kept = out = model(x)", "out.detach_()", "kept", True),
        ("out = model(x)\n        kept = out[:]", "out.detach_()", "kept", True),
        ("out = model(x)", "out.view(-1).detach_()", "out", True),
        ("out = model(x)", "out.data.detach_()", "out", True),
        ("out = model(x)", "if epoch:\n            out.detach_()", "out", True),
    ],
)
def test_a_graph_ends_where_a_tensor_is_detached_in_place(makes: str, detaches: str, takes: str, refused: bool) -> None:
    result = plain(HEAD + DETACHED.format(makes=makes, detaches=detaches, takes=takes))
    assert bool(refusals(result)) is refused


def test_the_gradient_of_one_noise_for_all_samples_is_refused() -> None:
    lines = """\
for x, y in train_loader:
    noise = torch.zeros(1, 4, requires_grad=True)
    F.cross_entropy(model(x + noise), y).backward()
    loss = F.cross_entropy(model(x + 0.1 * noise.grad), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    assert refusals(plain(HEAD + lines))
