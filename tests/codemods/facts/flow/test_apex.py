"""Scripts that let NVIDIA's apex.amp change their models, and scale their losses."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.facts.flow.apex import initializes, of_apex, scaled_for
from ddpify_codemods.facts.flow.values import Items, Library, Value, of

from tests.codemods.checks import script_of
from tests.codemods.plain.test_followed import HEAD, plain, refusals

APEX = "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n"
INITIALIZE = 'model, optimizer = amp.initialize(model, optimizer, opt_level="O2")\n'
STEP = """\
for epoch in range(3):
    for i, (x, y) in enumerate(train_loader):
        loss = F.cross_entropy(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())
"""
BUILT = HEAD.replace("model = ", "def build():\n    model = ").replace("optimizer = ", "    optimizer = ")
BUILT = BUILT.replace("total = 0.0\n", "    return model, optimizer\n\n\n")


def test_what_apex_gives() -> None:
    model, loss = of(Library("net")), Value("mean")
    both = of_apex("apex.amp.initialize", [model, Value()], {"opt_level": Value()})
    assert both is not None
    (items,) = both.only(Items)
    assert isinstance(items, Items) and items.known[0] is model
    assert of_apex("apex.amp.initialize", [model], {}) is model
    assert of_apex("apex.amp.initialize", [model, Value(is_none=None)], {}) is None
    scaled = of_apex("apex.amp.scale_loss", [loss, Value()], {})
    assert scaled is not None and scaled.kind == "mean"
    assert of_apex("apex.amp.half_function", [loss], {}) is None
    assert scaled_for(of(Library("apex.amp.scale_loss")), [Value()]) == []


def test_where_a_model_is_changed() -> None:
    script = script_of("from apex import amp\n[net, head], o = amp.initialize([net, head], o)\nnet.cuda()")
    assert initializes(script, script.tree.body[1], "head") and not initializes(script, script.tree.body[1], "o")
    assert not initializes(script, script.tree.body[2], "net")


@pytest.mark.parametrize("before", ["", "if options.half:\n    "])
def test_a_model_is_wrapped_behind_apex(before: str) -> None:
    options = "import argparse\noptions = argparse.ArgumentParser().parse_args()\n"
    result = plain(options + APEX + HEAD + before + INITIALIZE + STEP)
    assert not refusals(result)
    assert result.code.index("amp.initialize") < result.code.index("ddp_model = DistributedDataParallel(model)")
    assert "F.cross_entropy(ddp_model(x), y)" in result.code


def test_gradients_are_averaged_in_each_pass_that_apex_looks_at() -> None:
    """Else a rank would see infinite numbers alone, and skip a step alone."""
    raw = """        attack = F.cross_entropy(model(x), y)
        with amp.scale_loss(attack, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.zero_grad()
"""
    result = plain(APEX + HEAD + INITIALIZE + STEP.replace("        loss =", raw + "        loss =", 1))
    assert not refusals(result) and result.code.count("ddp_model(x)") == 2
    steps = STEP.replace("        optimizer.step()\n        optimizer.zero_grad()\n", "")
    steps += "        if (i + 1) % 2 == 0:\n            optimizer.step()\n            optimizer.zero_grad()\n"
    plainly = "        loss.backward()\n        loss = F.cross_entropy(model(x * 2), y)\n        with"
    for each in (steps, steps.replace("        with", plainly, 1)):
        result = plain(APEX + HEAD + INITIALIZE + each)
        assert not refusals(result) and "require_backward_grad_sync" not in result.code


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (BUILT + "model, optimizer = build()\n" + INITIALIZE + STEP, "before it is wrapped"),
        (HEAD + INITIALIZE.replace("model,", "net,", 1) + STEP.replace("model(x)", "net(x)"), "cannot be followed"),
    ],
)
def test_models_that_apex_gets_elsewhere_are_refused(source: str, reason: str) -> None:
    assert any(reason in each for each in refusals(plain(APEX + source)))


@pytest.mark.parametrize("target", ["horovod", "ignite"])
def test_another_engine_may_average_later(target: str) -> None:
    path = Path("train.py")
    result = convert({path: APEX + HEAD + INITIALIZE + STEP}, target, style="plain")[path]
    assert any("apex.amp looks at gradients" in each for each in refusals(result))
