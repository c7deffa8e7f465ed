"""What of several ways the run takes is not known: both are followed, and no constant outlives another assignment."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons, undivided

SHOWN = "        if {test}:\n            print(loss.item())\n"
LOSS = """\
for x, y in train_loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y, reduction={reduction})
    loss.backward()
    optimizer.step()
"""
TEACHER = "teacher = None\nif n > 2:\n    teacher = nn.Linear(4, 3)\n"
FOUND = "def find():\n    if n > 2:\n        return nn.Linear(4, 3)\n{otherwise}\nteacher = find()\n"


@pytest.mark.parametrize("test", ["teacher is None", "teacher is not None", "None is not teacher"])
@pytest.mark.parametrize("begin", [TEACHER, FOUND.format(otherwise=""), FOUND.format(otherwise="    return None")])
def test_what_may_be_none_is_followed_both_ways(begin: str, test: str) -> None:
    assert followed(begin + TRAINING + SHOWN.format(test=test)).found.reductions


def test_what_is_none_or_not_in_each_call_is_followed_one_way() -> None:
    code = "def of(z, y, n=None):\n    return F.cross_entropy(z, y) if n is None else F.cross_entropy(z, y).exp()\n"
    assert not reasons(code + TRAINING.replace("F.cross_entropy", "of"))


def test_losses_of_both_ways_have_to_be_divided_alike() -> None:
    otherwise = "        if teacher is None:\n            loss = loss * len(x)\n        loss.backward()\n"
    code = TEACHER + TRAINING.replace("        loss.backward()\n", otherwise)
    assert any(": it is not the same kind of number" in reason for reason in reasons(code))


CASES = """\
        match mode:
            case "a" | "b" if n > 3:
                {}
            case _:
                pass
"""


def test_a_case_is_followed() -> None:
    assert followed(TRAINING + CASES.format("print(loss.item())")).found.reductions
    otherwise = CASES.format("loss = loss * len(x)") + "        loss.backward()\n"
    changed = TRAINING.replace("        loss.backward()\n", otherwise)
    assert any(": it is not the same kind of number" in reason for reason in reasons(changed))


def test_what_is_matched_is_agreed_on() -> None:
    code = "        match loss.item():\n            case 0.0:\n                pass\n"
    assert followed(TRAINING + code).found.reductions


@pytest.mark.parametrize(
    ("begin", "reduction"),
    [
        ("class C:\n    how = 'mean'\nC.how = 'sum'\n", "C.how"),
        ("class C:\n    pass\nc = C()\nc.how = 'mean'\nsetattr(c, 'how', 'sum')\n", "c.how"),
        ("class C:\n    pass\nc = C()\nc.how = 'mean'\nsetattr(c, name, 'sum')\n", "c.how"),
        ("import argparse\nc = argparse.ArgumentParser().parse_args()\nif n > 2:\n    c.how = 'mean'\n", "c.how"),
        ("c = {'how': 'mean'}\nc.update(how='sum')\n", "c['how']"),
        ("c = {'how': 'mean'}\nc.update(read())\n", "c['how']"),
        ("c = {'how': 'mean'}\nif n > 2:\n    c['how'] = 'sum'\n", "c['how']"),
        (
            "how = 'sum'\ndef choose():\n    global how\n    how = 'mean'\n"
            "def main():\n    if n > 2:\n        choose()\nmain()\n",
            "how",
        ),
    ],
)
def test_a_constant_that_may_be_another_one_is_not_known(begin: str, reduction: str) -> None:
    assert undivided(begin + LOSS.format(reduction=reduction))


@pytest.mark.parametrize("begin", ["c = {'how': 'mean'}\nc.update(other='sum')\n", "c = {}\nc['how'] = 'mean'\n"])
def test_a_constant_that_stays_is_known(begin: str) -> None:
    assert not undivided(begin + LOSS.format(reduction="c['how']"))


GENERATOR = """\
def batches():
    for x, y in test_loader:
        yield x, y
for x, y in batches():
    total += (model(x).argmax(1) == y).sum().item()
print(total)
"""
OF_ANOTHER = GENERATOR.replace("for x, y in test_loader:\n        yield x, y", "yield from test_loader")


@pytest.mark.parametrize("code", [GENERATOR, OF_ANOTHER])
def test_what_a_generator_gives_is_evaluated_whole(code: str) -> None:
    assert "sharded" not in followed(TRAINING + code).status.values()


DECORATED = """\
def told(function):
    def inner(*args):
        out = function(*args)
        print(out.item())
        return out
    return inner
@told
def loss_of(z, y):
    return F.cross_entropy(z, y)
"""


def test_what_a_decorator_makes_is_followed() -> None:
    assert followed(DECORATED + TRAINING.replace("F.cross_entropy(m", "loss_of(m")).found.reductions


TOLD = """\
class Told:
    def __init__(self, loss):
        self.loss = loss
    def __enter__(self):
        return self
    def __exit__(self, *rest):
        print(self.loss.item())
"""


def test_what_happens_at_the_end_of_with_is_followed() -> None:
    assert followed(f"{TOLD}{TRAINING}        with Told(loss):\n            pass\n").found.reductions


def test_numbers_that_are_handed_on_from_turn_to_turn() -> None:
    turn = ("if a:", "    print(a)", "a = b", "b = c", "c = d", "d = loss.item()")
    code = "a = b = c = d = 0\n" + TRAINING + "".join(f"        {line}\n" for line in turn)
    assert followed(code).found.reductions


def test_nothing_is_followed_after_a_return() -> None:
    code = "def of(z, y, n=None):\n    if n is None:\n        return F.cross_entropy(z, y)\n    return z.max()\n"
    assert not reasons(code + TRAINING.replace("F.cross_entropy", "of"))


@pytest.mark.parametrize(
    ("program", "begins"),
    [
        ("{0}{0}", ["for epoch in range(2):"]),
        ("if total:\n{1}else:\n{1}", ["for epoch in range(2):"] * 2),
        ("if total:\n{1}{0}", ["for epoch in range(2):"] * 2),
        ("if total:\n{1}else:\n{1}{0}", ["for epoch in range(2):"] * 2),
        ("if total:\n    raise ValueError\n{0}", ["for epoch in range(2):"]),
        ("for part in range(2):\n    if total:\n{1}    else:\n{1}", ["for part in range(2):"]),
    ],
)
def test_the_first_pass_of_training_is_known_on_each_way(program: str, begins: list[str]) -> None:
    nested = textwrap.indent(TRAINING, "    " * (2 if program.startswith("for") else 1))
    found = followed(program.format(TRAINING, nested)).found.first_passes
    assert [ast.unparse(at).splitlines()[0] for _, at in found] == begins


WARM_UP = """\
for epoch in range(2):
    for i, (x, y) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if i < 3:
            loss.backward()
            optimizer.step()
            {}
        (2 * loss).backward()
        optimizer.step()
"""


def test_a_way_that_ends_its_turn_leaves_no_gradients_for_what_stands_below() -> None:
    assert reasons(WARM_UP.format("continue")) == []
    assert any("two backward passes" in each for each in reasons(WARM_UP.format("print(i)")))
    later = "out = None\n" + WARM_UP.format("continue").replace(
        "loss = F.cross_entropy(model(x), y)\n        if i < 3:",
        "if i % 2 == 0:\n            out = model(x)\n            loss = F.cross_entropy(out, y)",
    ).replace("(2 * loss)", "out.pow(2).mean()")
    assert any("two backward passes" in each for each in reasons(later))


ONE_OF = """\
import sys
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        if len(sys.argv) == 2:
            loss = F.cross_entropy(model(x), y)
        elif len(sys.argv) == 3:
            loss = F.multi_margin_loss(model(x), y)
        else:
            {}
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("otherwise", "fine"),
    [
        ("raise ValueError(sys.argv)", True),
        ("print(sys.argv)\n            raise SystemExit", True),
        ("loss.backward()\n            raise ValueError(sys.argv)", True),
        ("raise StopIteration", False),  # which a loop may take for its end
        ("print(sys.argv)", False),
        ("loss = 2 * loss", False),
    ],
)
def test_a_way_that_raises_leaves_no_gradients_for_what_stands_below(otherwise: str, fine: bool) -> None:
    start = "loss = torch.zeros(())\n" + ONE_OF
    assert any("two backward" in each for each in reasons(start.format(otherwise))) is not fine
    turned = ONE_OF.replace(
        "if len(sys.argv) == 2:", "if len(sys.argv) > 3:\n            {0}\n        elif len(sys.argv) == 2:"
    )
    turned = turned.replace("elif len(sys.argv) == 3", "elif True").replace("        else:\n            {}\n", "")
    found = reasons("loss = torch.zeros(())\n" + turned.format(otherwise))
    assert any("two backward" in each for each in found) is not fine


@pytest.mark.parametrize("around", ["try", "with Quiet()"])
def test_what_raises_may_be_caught_and_the_run_go_on(around: str) -> None:
    body = ONE_OF.format("raise ValueError(sys.argv)").partition("\n")[2]
    rest = "\nexcept ValueError:\n    pass\n" if around == "try" else "\n"
    caught = "import sys\n" + f"{around}:\n" + "\n".join(f"    {line}" for line in body.splitlines()) + rest
    assert any("two backward" in each for each in reasons("loss = torch.zeros(())\n" + caught))


LOOP = "loss = torch.zeros(())\n" + ONE_OF


@pytest.mark.parametrize(
    ("raised", "fine"),
    [
        *(("raise Wrong(1)", True), ("raise KeyError", True), ("raise Done", False), ("raise Renamed()", False)),
        *(("raise Stop", False), ("raise unknown.Error(1)", False), ("raise ValueError(1) from None", True)),
    ],
)
def test_an_exception_that_a_loop_takes_for_its_end_does_not_end_the_run(raised: str, fine: bool) -> None:
    classes = "from builtins import StopIteration as Renamed\nimport unknown\nStop = StopIteration\n"
    classes += "class Done(StopIteration):\n    pass\nclass Wrong(ValueError):\n    pass\n"
    assert any("two backward" in each for each in reasons(classes + LOOP.format(raised))) is not fine


@pytest.mark.parametrize(
    ("raised", "handler", "fine"),
    [
        ("raise ValueError", "except KeyboardInterrupt:\n    print(0)", True),
        ("raise ValueError", "except (KeyboardInterrupt, OSError):\n    print(0)", True),
        ("raise ValueError", "finally:\n    print(0)", True),
        ("raise KeyboardInterrupt", "except KeyboardInterrupt:\n    print(0)", False),
        ("raise Stopped", "except KeyboardInterrupt:\n    print(0)", False),
        ("raise ValueError", "except Stopped:\n    print(0)", True),
        ("raise ValueError", "except Exception:\n    print(0)", False),
        ("raise ValueError", "except (OSError, *others):\n    print(0)", False),
        ("raise ValueError", "except:\n    print(0)", False),
        ("raise ValueError", "except unknown.Error:\n    print(0)", False),
    ],
)
def test_a_handler_catches_what_its_class_says(raised: str, handler: str, fine: bool) -> None:
    code = LOOP.format(raised).partition("for epoch")
    body = "\n".join(f"    {line}" for line in (code[1] + code[2]).splitlines())
    stopped = "import unknown\nothers = [ValueError]\nclass Stopped(KeyboardInterrupt):\n    pass\n"
    found = reasons(f"{stopped}{code[0]}try:\n{body}\n{handler}\n")
    assert any("two backward" in each for each in found) is not fine


@pytest.mark.parametrize("left", ["continue", "break"])
def test_a_finally_that_leaves_its_loop_passes_over_what_is_raised(left: str) -> None:
    head, _, body = LOOP.format("raise ValueError").partition("        optimizer.zero_grad()\n")
    tried = "\n".join(f"    {line}" for line in ("        optimizer.zero_grad()\n" + body).splitlines())
    passed = f"{head}        try:\n{tried}\n        finally:\n            {{}}\n"
    assert any("two backward" in each for each in reasons(passed.format(left)))
    assert not any("two backward" in each for each in reasons(passed.format("print(0)")))


@pytest.mark.parametrize(
    ("otherwise", "fine"),
    [
        *(("sys.exit(1)", True), ("exit()", True), ("sys.exc_info()", False), ("quit(loss)", True)),
        ("try:\n                sys.exit(1)\n            except SystemExit:\n                pass", False),
    ],
)
def test_a_way_that_exits_leaves_no_gradients(otherwise: str, fine: bool) -> None:
    assert any("two backward" in each for each in reasons(LOOP.format(otherwise))) is not fine
    own = "def exit():\n    pass\n" + LOOP.format("exit()")
    assert any("two backward" in each for each in reasons(own))


@pytest.mark.parametrize(
    ("last", "fine"),
    [
        *(("case _:\n                raise ValueError", True), ("case _:\n                sys.exit(1)", True)),
        *(("case 4:\n                raise ValueError", False), ("case _:\n                print(1)", False)),
        ("case 4:\n                raise KeyError\n            case _:\n                raise ValueError", True),
        ("case _ if sys.argv:\n                raise ValueError", False),
    ],
)
def test_the_last_case_of_a_match_may_end_the_run(last: str, fine: bool) -> None:
    start = LOOP.partition("        if len")[0]
    cases = f"""\
        match len(sys.argv):
            case 2:
                loss = F.cross_entropy(model(x), y)
            case 3:
                loss = F.multi_margin_loss(model(x), y)
            {last}
        loss.backward()
        optimizer.step()
"""
    assert any("two backward" in each for each in reasons(start + cases)) is not fine


NETS = """\
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(4, 3)
    def forward(self, x):
        return self.out(self.drop(x))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
    def forward(self, x):
        return self.part(x)
"""
NET = "net = Net()\n"
OPTIMIZER = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
FOLDS = """\
    def main():
        {}for epoch in range(2):
            for x, y in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(net(x), y).backward()
                optimizer.step()
    if {}:
        main()
"""
MAIN = '__name__ == "__main__"'


def test_a_guard_in_a_loop_holds_as_at_the_end_of_the_file() -> None:
    folds = f"{NETS}for fold in range(2):\n    {NET}"
    begins = f"{OPTIMIZER}        "
    assert not reasons(folds + FOLDS.format(begins, MAIN))
    assert any("parameters of a model are drawn" in each for each in reasons(folds + FOLDS.format(begins, "n > 2")))


def test_what_is_drawn_again_behind_a_wrapper_stays_refused_above_a_guard() -> None:
    anew = "for fold in range(2):\n    for p in net.parameters():\n        p.data.normal_()\n"
    found = reasons(NETS + NET + OPTIMIZER + anew + FOLDS.format("", MAIN))
    assert any("parameters of a model are drawn" in each for each in found)
