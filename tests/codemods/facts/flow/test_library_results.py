"""What functions of libraries make of samples, and of what is alike on all ranks."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.library_results import local_rows, local_rows_or_sizes
from ddpify_codemods.facts.flow.values import Value

from tests.codemods.facts.flow.followed import TRAINING, reasons, undivided


def test_values_of_a_ranks_rows() -> None:
    assert local_rows([Value("rows"), Value("same")]) and not local_rows([Value("sum")])
    assert local_rows_or_sizes([Value("rows"), Value("size")])


def test_an_array_that_is_the_same_on_all_ranks_is_so_as_a_tensor() -> None:
    source = "import numpy as np\n" + TRAINING.replace(
        "F.cross_entropy(model(x), y)", "F.cross_entropy(model(x) * torch.from_numpy(np.ones(3)).type_as(x).mean(), y)"
    )
    assert reasons(source) == []


NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
    def forward(self, x):
        {}
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
EACH = "outs = []\n        for {}:\n            outs.append({})\n        "


@pytest.mark.parametrize(
    "body",
    [
        EACH.format("i in range(3)", "self.out(x)") + "return torch.stack(outs).mean(0)",
        "return torch.stack([self.out(x) for _ in range(3)]).mean(0)",
        "return torch.stack([self.out(x) for _ in range(3)], dim=-1).sum(-1)",
        "return torch.stack([part for part in self.out(torch.cat([x, x], 1)[:, :4]).chunk(1, 1)]).mean(0)",
        "a, b, c = self.out(x).unbind(1)\n        return torch.stack((a, b, c), 1)",
    ],
)
def test_tensors_of_a_batch_that_are_stacked_are_no_samples(body: str) -> None:
    assert not undivided(NET.format(body) + TRAINING)


@pytest.mark.parametrize(
    "body",
    [
        "return self.out(x) - torch.stack([self.out(x) for _ in range(3)], 1).mean(0).mean(0)",
        "return self.out(x) - torch.stack([self.out(one) for one in x]).mean(0)",
        "return self.out(x) - torch.stack([one for one in self.out(x)]).mean(0)",
        EACH.format("one in x", "self.out(one)") + "return self.out(x) - torch.stack(outs).mean(0)",
        EACH.format("one in x.view(-1, 4)", "self.out(one)") + "return self.out(x) - torch.stack(outs).mean(0)",
        "outs = []\n        outs.extend(self.out(x))\n        return self.out(x) - torch.stack(outs).mean(0)",
        "return self.out(x) - torch.stack(self.out(x).unbind(0)).mean(0)",
    ],
)
def test_samples_that_are_stacked_are_samples(body: str) -> None:
    assert undivided(NET.format(body) + TRAINING)


MOVED = NET.format("h = self.out(x).view(-1, 3, 1)\n        return ({}).flatten(1)")


@pytest.mark.parametrize("made", ["torch.roll(h, shifts=(1, 1), dims=(1, 2))", "h.flip(dims=[1])", "h.flip(1, 2)"])
def test_dimensions_by_another_name_and_several(made: str) -> None:
    assert not undivided(MOVED.format(made) + TRAINING)


@pytest.mark.parametrize("made", ["torch.roll(h, shifts=(1, 1), dims=(0, 1))", "h.flip(dims=[0])", "h.flip(2, 0)"])
def test_samples_that_change_places(made: str) -> None:
    assert undivided(MOVED.format(made) + TRAINING)


def test_the_type_of_a_batch_is_the_same_on_all_ranks() -> None:
    for test in ("isinstance(x, torch.Tensor)", "type(x) == list", "not isinstance(x, (list, tuple))"):
        assert not undivided(NET.format(f"x = 2 * x if {test} else x\n        return self.out(x)") + TRAINING), test


OUT = TRAINING.replace(
    "loss = F.cross_entropy(model(x), y)", "out = model(x)\n        m = x[:, 0] > 0.5\n        loss = {}.pow(2).mean()"
)


def test_tensors_of_a_batch_that_are_put_together_keep_where_their_samples_lie() -> None:
    for made in (
        "torch.cat([out, out], 1)",
        "torch.cat([out.unsqueeze(0), out.unsqueeze(0)], dim=0).max(dim=0)[0]",
        "torch.cat([out.unsqueeze(0), out.unsqueeze(0)]).mean(0)",
        "torch.cat([out.t(), out.t()]).softmax(0)",
        "round(abs(out))",
    ):
        assert not undivided(OUT.format(made)), made
    for made in ("torch.cat([out[m], out[m]])", "torch.cat([out.t(), out.t()], 1).softmax(1)"):
        assert undivided(OUT.format(made)), made


def test_images_of_a_batch_are_changed_one_by_one() -> None:
    source = "import torchvision.transforms.functional as TF\n" + TRAINING
    assert not reasons(source.replace("model(x)", "model(TF.affine(x, 3, (0, 0), 1.0, 0))"))
    turned = source.replace("model(x)", "model(TF.resize(x.t(), [4]).t())")
    assert undivided(turned)


def test_the_shape_that_numpy_says() -> None:
    source = "import numpy as np\n" + TRAINING
    assert not undivided(source.replace("model(x)", "model(x + torch.randn(np.shape(x)[0], 4))"))
    assert reasons(
        source.replace("loss.backward()", "if np.shape(x)[0] > 3:\n            print(1)\n        loss.backward()")
    )


def test_a_transform_of_what_is_not_known_is_not_known() -> None:
    made = "        x = torchvision.transforms.functional.normalize(torch.special.expit(x.norm()) * x, 0, 1)\n"
    source = "import torchvision\n" + TRAINING.replace("        loss =", made + "        loss =")
    assert isinstance(reasons(source), list)


@pytest.mark.parametrize("made", ["np.zeros(h.shape)", "np.zeros(h.shape, dtype=np.float32)", "np.ones(h.shape)"])
def test_an_array_of_the_shape_of_another_has_its_samples_where_that_has_them(made: str) -> None:
    for h, fine in (("x", True), ("x.t()", False)):
        loss = f"F.cross_entropy(model(x + torch.from_numpy({made.replace('h.', f'{h}.')}).mean(1, keepdim=True)), y)"
        source = "import numpy as np\n" + TRAINING.replace("F.cross_entropy(model(x), y)", loss)
        assert (undivided(source) == []) is fine
