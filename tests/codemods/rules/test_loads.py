"""DDP131: torch.load, which would put what rank 0 saved onto the GPU of rank 0, on every rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

data = {load}
loader = DataLoader(TensorDataset(data), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1).cuda()
model.load_state_dict(torch.load("model.pt"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    loss = model(x.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PATH = Path("train.py")


def converted(source: str, target: str, style: str = "exact") -> str:
    return convert({PATH: source}, target, style=style)[PATH].code


@pytest.mark.parametrize(
    ("target", "place"),
    [("cuda", '{"cuda:0": "cuda"}'), ("xpu", '{"xpu:0": "xpu"}'), ("cpu", ""), ("xla", "")],
)
def test_tensors_go_to_the_device_of_the_rank(target: str, place: str) -> None:
    code = converted(SCRIPT.format(load='torch.load("data.pt")'), target)
    loads = [line for line in code.splitlines() if "torch.load(" in line]
    assert len(loads) == 2
    assert all((f"map_location={place}" in line) if place else ("map_location" not in line) for line in loads)


@pytest.mark.parametrize("place", ['"cpu"', "None", '{"cuda:0": "cpu"}', "lambda storage, at: storage"])
def test_what_says_where_tensors_go_stays(place: str) -> None:
    load = f'torch.load("data.pt", map_location={place})'
    assert f"data = {load}" in converted(SCRIPT.format(load=load), "cuda")


@pytest.mark.parametrize(("target", "place"), [("xpu", 'map_location={"xpu:0": "xpu"}'), ("cpu", ""), ("xla", "")])
def test_a_converted_file_loads_onto_another_target(target: str, place: str) -> None:
    source = SCRIPT.format(load='torch.load("data.pt")')
    code = converted(converted(source, "cuda"), target)
    assert (place in code) if place else ("map_location" not in code)
    assert "cuda:0" not in code


def test_the_way_back_leaves_no_trace() -> None:
    source = SCRIPT.format(load='torch.load("data.pt")')
    assert "map_location" not in converted(converted(source, "cuda"), "none")


def test_plain_code_keeps_data_in_host_memory_too() -> None:
    code = converted(SCRIPT.format(load='torch.load("data.pt")'), "cuda", "plain")
    assert 'data = torch.load("data.pt", map_location={"cuda:0": "cuda"})' in code
    assert 'model.load_state_dict(torch.load("model.pt", map_location="cuda"))' in code


SPREAD = SCRIPT.format(load='torch.load("data.pt", **given)').replace("data =", "given = {}\ndata =")


def test_what_may_say_where_tensors_go_comes_first() -> None:
    code = converted(SPREAD, "cuda")
    assert 'data = torch.load("data.pt", **{"map_location": {"cuda:0": "cuda"}, **given})' in code
    assert converted(code, "cuda") == code
    assert '**{"map_location": {"xpu:0": "xpu"}, **given}' in converted(code, "xpu")
    assert 'torch.load("data.pt", **given)' in converted(code, "none")
    assert 'torch.load("data.pt", **given)' in converted(code, "cpu")


@pytest.mark.parametrize("load", ["torch.load(*given)", "torch.load(*given, weights_only=False, **{})"])
def test_what_may_come_by_place_is_left(load: str) -> None:
    source = SCRIPT.format(load=load).replace("data =", 'given = ("data.pt", "cpu")\ndata =')
    assert f"data = {load}" in converted(source, "cuda")
