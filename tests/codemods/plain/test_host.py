"""Programs that name no device, for targets with one: their processes send what is on the CPU, too."""

from pathlib import Path
from textwrap import indent

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_files import TRAINED

PATH = Path("train.py")
TEXT = TRAINED.format(before="", each="pass", after="")


@pytest.mark.parametrize(("target", "backend"), [("cuda", "cpu:gloo,cuda:nccl"), ("xpu", "cpu:gloo,xpu:xccl")])
def test_gloo_sends_what_stays_on_the_cpu(target: str, backend: str) -> None:
    result = convert({PATH: TEXT}, target, style="plain")[PATH]
    assert f'dist.init_process_group("{backend}")' in result.code
    assert "ddp_model = DistributedDataParallel(model)" in result.code
    assert any(f"no {target} device is named" in finding.message for finding in result.findings)
    assert convert({PATH: result.code}, target, style="plain")[PATH].code == result.code
    assert 'gloo")' in convert({PATH: result.code}, "cpu", style="plain")[PATH].code


@pytest.mark.parametrize(
    "lines",
    [
        'device = "cpu"\nmodel.to(device)\n',
        "print(torch.cuda.is_available())\n",
        'torch.load("m", map_location="cpu")\n',
    ],
)
def test_a_program_that_only_speaks_of_devices_stays_on_the_cpu(lines: str) -> None:
    made = "model = torch.nn.Linear(4, 1)\n"
    result = convert({PATH: TEXT.replace(made, made + lines)}, "cuda", style="plain")[PATH]
    assert 'dist.init_process_group("cpu:gloo,cuda:nccl")' in result.code
    assert any("no cuda device is named" in finding.message for finding in result.findings)


@pytest.mark.parametrize(
    ("lines", "backend"),
    [
        ('device = torch.device("cpu" if args.no_cuda else "cuda")\nmodel.to(device)\n', "cpu:gloo,cuda:nccl"),
        ("device = torch.device(args.device)\nmodel.to(device)\n", "cpu:gloo,cuda:nccl"),
        ("if args.cuda:\n    model.cuda()\n", "cpu:gloo,cuda:nccl"),
        ('device = "cuda" if torch.cuda.is_available() else "cpu"\nmodel.to(device)\n', "nccl"),
        ("if torch.cuda.is_available():\n    model.cuda()\n", "nccl"),
    ],
)
def test_a_model_that_a_switch_leaves_on_the_cpu(lines: str, backend: str) -> None:
    made = "model = torch.nn.Linear(4, 1)\n"
    options = "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"
    result = convert({PATH: options + TEXT.replace(made, made + lines)}, "cuda", style="plain")[PATH]
    assert f'dist.init_process_group("{backend}")' in result.code
    assert convert({PATH: result.code}, "cuda", style="plain")[PATH].code == result.code


@pytest.mark.parametrize(
    ("after", "backend"),
    [
        ("model.eval().to(device='cpu')", "cpu:gloo,cuda:nccl"),
        ("model = model.cpu()", "cpu:gloo,cuda:nccl"),
        ("host = torch.device('cpu')\nmodel.to(host)", "cpu:gloo,cuda:nccl"),
        ("print(loss.cpu())", "nccl"),
        ("model.to('cuda')", "nccl"),
    ],
)
def test_buffers_of_a_model_that_goes_back_to_the_cpu_are_sent_by_gloo(after: str, backend: str) -> None:
    layers = "torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.BatchNorm1d(1)).cuda()"
    source = TEXT.replace("torch.nn.Linear(4, 1)", layers)
    used = "\nmodel.eval()\nwith torch.no_grad():\n    print(model(torch.ones(1, 4).to(next(model.parameters()))))\n"
    code = convert({PATH: f"{source}{after}{used}"}, "cuda", style="plain")[PATH].code
    assert f'dist.init_process_group("{backend}")' in code and "dist.broadcast(buffer, 0)" in code
    without = convert(
        {PATH: f"{source}{after}{used}".replace(layers, "torch.nn.Linear(4, 1).cuda()")}, "cuda", style="plain"
    )
    assert 'dist.init_process_group("nccl")' in without[PATH].code


def test_xla_is_said_no_device_and_no_option_of_gpus() -> None:
    layers = "torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.BatchNorm1d(1))"
    guarded = (
        f"import torch\nif __name__ == '__main__':\n{indent(TEXT.replace('torch.nn.Linear(4, 1)', layers), '    ')}"
    )
    result = convert({PATH: guarded}, "xla", style="plain")[PATH]
    assert "torch_xla.device()" in result.code
    said = [f"{finding.message}; {finding.remedy}" for finding in result.findings]
    assert not [line for line in said if "device is named" in line or "--sync-batchnorm" in line]
    assert [line for line in said if "the batch of each rank; --style exact takes those of the whole batch" in line]


@pytest.mark.parametrize("moved", ["model = torch.nn.Linear(4, 1).cuda()", 'model = torch.nn.Linear(4, 1).to("cuda")'])
def test_a_model_on_its_device_is_wrapped_there(moved: str) -> None:
    result = convert({PATH: TEXT.replace("model = torch.nn.Linear(4, 1)", moved)}, "cuda", style="plain")[PATH]
    assert "ddp_model = DistributedDataParallel(model)\n" in result.code
    assert 'dist.init_process_group("nccl")' in result.code


def test_synchronized_batch_norm_is_not_written_for_the_cpu() -> None:
    layers = "torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.BatchNorm1d(1))"
    on_host = TEXT.replace("torch.nn.Linear(4, 1)", layers)
    result = convert({PATH: on_host}, "cuda", style="plain", sync_batchnorm=True)[PATH]
    assert result.code == on_host
    [refused] = [finding for finding in result.findings if finding.severity == "refused"]
    assert "leave out --sync-batchnorm" in refused.remedy
    moved = on_host.replace(layers, f"{layers}.cuda()")
    there = convert({PATH: moved}, "cuda", style="plain", sync_batchnorm=True, entry="spawn")[PATH].code
    assert "SyncBatchNorm.convert_sync_batchnorm(model)" in there
    back = convert({PATH: there}, "none")[PATH].code
    assert "SyncBatchNorm" not in back and convert({PATH: back}, "cuda", style="plain")[PATH].code != there


@pytest.mark.parametrize(
    ("test", "refused"),
    [
        ("isinstance(layer, torch.nn.BatchNorm1d)", True),
        ("type(layer) == torch.nn.BatchNorm1d", True),
        ("isinstance(layer, (torch.nn.GroupNorm, torch.nn.BatchNorm1d))", True),
        ("isinstance(layer, (torch.nn.BatchNorm1d, torch.nn.SyncBatchNorm))", False),
        ("isinstance(layer, torch.nn.Linear)", False),
    ],
)
def test_layers_that_are_told_apart_by_a_class_that_they_lose(test: str, refused: bool) -> None:
    layers = "torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.BatchNorm1d(1)).cuda()"
    frozen = f"def freeze(layer):\n    if {test}:\n        layer.eval()\n\n\n"
    source = TEXT.replace("torch.nn.Linear(4, 1)", layers)
    found = convert({PATH: source + frozen}, "cuda", style="plain", sync_batchnorm=True)[PATH].findings
    assert any("--sync-batchnorm makes of it" in each.message for each in found) is refused
    for other, options in (
        (source + frozen, {}),
        (source + frozen.replace("freeze", "init"), {"sync_batchnorm": True}),
        (source + frozen.replace("layer.eval()", "nn.init.ones_(layer.weight)"), {"sync_batchnorm": True}),
    ):
        again = convert({PATH: other}, "cuda", style="plain", **options)[PATH].findings  # type: ignore[arg-type]
        assert not any("--sync-batchnorm makes of it" in each.message for each in again)


def test_xla_refuses_a_script_that_trains_at_import_in_one_sentence() -> None:
    findings = convert({PATH: TEXT}, "xla", style="plain")[PATH].findings
    [refused] = [finding for finding in findings if finding.severity == "refused"]
    assert refused.line == 1 and "put what trains into a function" in refused.remedy
