"""DDP202: the wrapper's arguments, and models that are moved before their optimizers are built."""

from __future__ import annotations

import pytest

from .eager import check_noop, check_transformed, program, program_findings, refusals

_DEVICE = "torch_xla.device()"
_BUILD = """\
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def build(model):
        return torch.optim.SGD(model.parameters(), lr=0.1)


    def main():
        dist.init_process_group("nccl")
        model = torch.nn.Linear(4, 1)
        {before}
        optimizer = build(model)
        {after}
        DDP(model)(torch.rand(8, 4).cuda()).mean().backward()
        optimizer.step()


    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("lines", ["torch.optim.lr_scheduler.StepLR(optimizer, 1)", "model.train()", "DDP"])
def test_nothing_to_do(lines: str) -> None:
    check_noop(lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m = DDP(net, device_ids=[rank])", "m = DDP(net, gradient_as_bucket_view=True)"),
        ("m = DDP(net, [rank], rank)", "m = DDP(net, gradient_as_bucket_view=True)"),
        ("m = DDP(module=net, output_device=rank)", "m = DDP(net, gradient_as_bucket_view=True)"),
        ("m = DDP(net, gradient_as_bucket_view=False)", "m = DDP(net, gradient_as_bucket_view=True)"),
        ("m = DDP(net, bucket_cap_mb=5)", "m = DDP(net, bucket_cap_mb=5, gradient_as_bucket_view=True)"),
        (
            "m = DDP(nn.Linear(4, 1).cuda(rank))",
            f"m = DDP(nn.Linear(4, 1).to({_DEVICE}), gradient_as_bucket_view=True)",
        ),
        ("m = DDP(nn.Linear(4, 1))", f"m = DDP(nn.Linear(4, 1).to({_DEVICE}), gradient_as_bucket_view=True)"),
    ],
)
def test_arguments(before: str, after: str) -> None:
    check_transformed(before, after)


@pytest.mark.parametrize("lines", ["m = DDP(**given)", "m = DDP(net, **given)", "m = DDP(net, [0], 0, 0, True, None)"])
def test_arguments_that_are_not_known(lines: str) -> None:
    assert "DDP202" in refusals(lines)


def test_a_model_that_is_moved_too_late() -> None:
    check_transformed(
        "m = nn.Linear(4, 1)\no = torch.optim.SGD(m.parameters(), lr=1)\nm = m.cuda()\nm = DDP(m)",
        f"m = nn.Linear(4, 1)\nm = m.to({_DEVICE})\no = torch.optim.SGD(m.parameters(), lr=1)\n"
        f"m = m.to({_DEVICE})\nm = DDP(m, gradient_as_bucket_view=True)",
    )


@pytest.mark.parametrize("call", ["to(torch.float64)", "to(memory_format=torch.channels_last)", "to(x.dtype)"])
def test_a_change_of_type_is_no_move(call: str) -> None:
    check_transformed(
        f"m = nn.Linear(4, 1)\nm.{call}\no = torch.optim.SGD(m.parameters(), lr=1)",
        f"m = nn.Linear(4, 1)\nm.{call}\nm = m.to({_DEVICE})\no = torch.optim.SGD(m.parameters(), lr=1)",
    )


def test_a_model_that_is_moved_in_time() -> None:
    check_transformed(
        "m = nn.Linear(4, 1)\nm.cuda()\no = torch.optim.SGD(m.parameters(), lr=1)",
        f"m = nn.Linear(4, 1)\nm.to({_DEVICE})\no = torch.optim.SGD(m.parameters(), lr=1)",
    )


@pytest.mark.parametrize(
    ("before", "after", "moved"), [("pass", "model.cuda()", True), ("model.cuda()", "pass", False)]
)
def test_the_order_is_that_of_the_callers(before: str, after: str, moved: bool) -> None:
    code = program(_BUILD.format(before=before, after=after))
    assert (f"    model = model.to({_DEVICE})\n    return torch.optim.SGD" in code) is moved


def test_an_attribute_that_is_wrapped_elsewhere() -> None:
    code = program("""\
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    class Trainer:
        def __init__(self):
            self.model = torch.nn.Linear(4, 1)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

        def train(self):
            self.model = DDP(self.model.cuda())
            self.model(torch.rand(8, 4)).mean().backward()
            self.optimizer.step()


    if __name__ == "__main__":
        dist.init_process_group("nccl")
        Trainer().train()
    """)
    assert "self.model.to(torch_xla.device())\n        self.optimizer = " in code
    assert "self.model(torch.rand(8, 4).to(torch_xla.device()))" in code


def test_tied_weights_are_refused() -> None:
    above = """\
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
            self.second.weight = self.first.weight
    """
    assert refusals("pass", above) == ["DDP202"]


def test_an_optimizer_of_unknown_parameters_is_told() -> None:
    [finding] = program_findings(
        _BUILD.format(before="model.cuda()", after="pass").replace("model.parameters()", "model")
    )
    assert (finding.rule, finding.severity, finding.line) == ("DDP202", "warning", 7)
