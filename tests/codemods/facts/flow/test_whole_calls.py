"""Functions that read samples of training and of undivided evaluations: training gives them the batch of all ranks."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons

MEASURE = """\
def accuracy(out, y, threshold=0.5):
    y = y == torch.max(y)
    return float(torch.sum((out > threshold) == y)) / float(out.size(0) * out.size(1))


def doubled(out, y):
    return 2 * accuracy(out, y)


"""
PROGRAM = """\
for epoch in range(2):
    measured = 0.0
    for x, y in train_loader:
        out = model(x)
        optimizer.zero_grad()
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        measured += doubled(out, y[:, None])
    print(measured)
    measured = 0.0
    for x, y in test_loader:
        measured += doubled(model(x), y[:, None])
    print(measured)
"""


def test_what_the_call_is_given_is_brought_together() -> None:
    found = followed(MEASURE + PROGRAM)
    rows = {node for node, each in found.found.reductions.items() if {one.kind for one in each} == {"rows"}}
    assert {ast.unparse(node) for node in rows} == {"out", "y[:, None]"} and not found.problems
    assert all(isinstance(found.found.scripts[node].scope(node), ast.Module) for node in rows)
    assert {*found.status.values()} == {"training", "whole"}


def test_without_such_an_evaluation_the_function_does_it() -> None:
    found = followed(MEASURE + PROGRAM[: PROGRAM.rindex("    measured = 0.0")])
    scopes = {type(found.found.scripts[node].scope(node)) for node in found.found.reductions}
    assert ast.FunctionDef in scopes and not found.problems


@pytest.mark.parametrize("ratio", ["(hits + 5) / (count + 1)", "(hits - 1) * 2 + count ** 2", "(hits + 5) / 3"])
def test_sums_that_are_computed_with_are_those_of_the_evaluation_in_it(ratio: str) -> None:
    """Ranks that evaluate everything would add up what they all have."""
    counts = "    hits, count = ((out > threshold) == y).sum().item(), (out > 0).sum().item()\n"
    source = MEASURE[: MEASURE.index("    y = y ==")] + counts + f"    return {ratio}\n"
    source += MEASURE[MEASURE.index("\n\ndef doubled") :]
    behind = PROGRAM[: PROGRAM.rindex("        measured += ")] + "        outs, ys = [model(x)], [y]\n"
    behind += "    measured = doubled(torch.cat(outs), torch.cat(ys))\n    print(measured)\n"
    for program in (source + PROGRAM, source + behind):
        found = followed(program)
        assert {*found.status.values()} == {"training", "whole"} and not found.problems
        assert all(isinstance(found.found.scripts[node].scope(node), ast.Module) for node in found.found.reductions)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("loss = F.cross_entropy(out, y)", "loss = F.cross_entropy(out, y) + doubled(out, y[:, None])", "all ranks"),
        ("    y = y ==", "    out.sub_(1)\n    y = y ==", "a copy"),
        ("    y = y ==", "    out[0] = 1\n    y = y ==", "a copy"),
        ("    return 2 *", "    out -= 1\n    return 2 *", "a copy"),
        ("== y)) /", "== (y == (x[:, :1] > 0)))) /", "a copy"),
    ],
)
def test_what_a_copy_would_not_do(before: str, after: str, reason: str) -> None:
    source = MEASURE + PROGRAM
    assert before in source
    assert any(reason in each for each in reasons(source.replace(before, after)))


DRAWS_EACH = """\
import matplotlib.pyplot as plt
import numpy as np


def drawn(batch):
    images = []
    for i, series in enumerate(batch.detach()):
        figure = plt.figure()
        figure.gca().plot(series[:2].numpy())
        images.append(np.frombuffer(figure.canvas.tostring_rgb()))
        plt.close(figure)
    return torch.from_numpy(np.stack(images))


"""
IN_AN_EPOCH = "    picture = drawn(2 * {})\n    torch.save(picture, 'picture.pt')\n"


@pytest.mark.parametrize("samples", ["x", "x[:, 1:]", "model(x)"])
def test_a_function_that_draws_each_sample_gets_those_of_all_ranks(samples: str) -> None:
    found = followed(DRAWS_EACH + TRAINING + IN_AN_EPOCH.format(samples))
    reductions = [one for each in found.found.reductions.values() for one in each]
    assert {one.kind for one in reductions} == {"rows"} and not found.problems
    assert all(isinstance(found.found.scripts[node].scope(node), ast.Module) for node in found.found.reductions)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    images = []\n", "    images = []\n    batch.mul_(2)\n"),
        ("torch.from_numpy(np.stack(images))", "batch"),
    ],
)
def test_one_that_changes_them_or_gives_them_back_is_refused(before: str, after: str) -> None:
    source = DRAWS_EACH.replace(before, after) + TRAINING + IN_AN_EPOCH.format("x")
    assert reasons(source)


def test_samples_that_are_read_one_by_one_beside_any_function_are_refused() -> None:
    each = "    for series in x:\n        plt.plot(series.numpy())\n"
    assert reasons(DRAWS_EACH + TRAINING + each)


METER = """\
import numpy as np


class Meter:
    def __init__(self):
        self.total, self.count, self.hits, self.kept = np.zeros(3), 0, 0, None

    def update(self, out, y):
        self.last = self.dice(out, y)
        self.total += self.last
        self.count += 1
{more}

    def dice(self, out, y):
        found = []
        for at in range(y.size()[1]):
            inter = torch.sum(out[:, at] * y[:, at])
            found.append(((2 * inter + 1) / (torch.sum(out[:, at]) + torch.sum(y[:, at]) + 1)).item())
        return np.asarray(found)

    def keep(self, out):
        self.kept = out

    def add(self):
        self.kept += 1

    def seen(self, out, y):
        self.hits += (out.argmax(1) == y).sum().item()


meter, tested = Meter(), Meter()
for x, y in train_loader:
    target = F.one_hot(y, 3).float()
    out = model(x)
    {call}
    meter.seen(out, y)
    optimizer.zero_grad()
    F.mse_loss({used}, target).backward()
    optimizer.step()
print(meter.total[0], meter.hits)
for x, y in test_loader:
    tested.update(model(x), F.one_hot(y, 3).float())
print(np.around(tested.total / tested.count, 4)[1])
"""


def is_refused(source: str) -> bool:
    """Whether something is read of samples in a function that training and an undivided evaluation call, say."""
    found = followed(source)
    both = found.found.reductions.keys() & found.found.read_same
    return bool(found.problems) or any(one.kind == "rows" for node in both for one in found.found.reductions[node])


def reasons_of_meter(more: str = "", call: str = "meter.update(out, target)", used: str = "out") -> list[str]:
    lines = "\n".join(f"        {line}" for line in more.splitlines())
    return reasons(METER.format(more=lines, call=call, used=used))


def test_an_object_that_is_called_on_gets_attributes_and_adds_to_its_own() -> None:
    found = followed(METER.format(more="", call="meter.update(out, target)", used="out"))
    assert not found.problems
    rows = {node for node, each in found.found.reductions.items() if {one.kind for one in each} == {"rows"}}
    assert {ast.unparse(node) for node in rows} == {"out", "target"}
    assert not reasons_of_meter("self.kept = out.detach()")
    assert is_refused(METER.format(more="        self.kept = out", call="meter.update(out, target)", used="out"))


@pytest.mark.parametrize(
    "more",
    [
        "out[:, 0] = 0",
        "out += 1",
        "self.kept = out.detach()\nself.kept += 1",
        "self.kept = out.detach()\nself.kept.mul_(2)",
        "self.kept = out.detach()\nself.kept[0] = 1",
        "self.kept = [out.detach()]\nself.kept[0] += 1",
        "self.keep(out)\nself.kept += 1",
        "self.keep(out)\nself.add()",
        "self.kept = out.detach()\nself.add()",
        "self.kept, self.other = out.detach(), y\nself.other -= 1",
        "other = Meter()\nother.kept = out.detach()\nother.kept += 1",
    ],
)
def test_an_object_that_may_change_what_it_is_given(more: str) -> None:
    assert any("would be done with a copy of it" in each for each in reasons_of_meter(more))


def test_an_object_may_change_what_it_keeps_by_another_call() -> None:
    found = reasons_of_meter("self.kept = out.detach()", call="meter.update(out, target)\n    meter.add()")
    assert any("would be done with a copy of it" in each for each in found)


def test_what_an_object_keeps_is_of_the_batch_of_all_ranks() -> None:
    assert reasons_of_meter("self.kept = out.detach()", used="meter.kept")
    assert reasons_of_meter("self.hits += (out > 0.1).sum().item()")  # which counts a rank's samples elsewhere


def test_a_function_that_is_given_an_object_may_change_it() -> None:
    assert any(
        "would be done with a copy of it" in each for each in reasons_of_meter(call="Meter.update(meter, out, target)")
    )


KEEPER = """\
import numpy as np


class Base:
    def __init__(self):
        self.outs, self.ys, self.count, self.whole = [], [], 0, []

    def update(self, out, y):
        self.outs.append(out.detach().cpu())
        self.ys.append(y)
{more}


class Ranks(Base):
    def compute(self):
        outs, ys = torch.cat(self.outs).numpy(), torch.cat(self.ys).numpy()
        return np.argsort(outs[:, 1])[ys == 1].mean()


def last(meter):
    return meter.outs[-1]


for epoch in range(2):
    meter = Ranks()
    for x, y in train_loader:
        out = model(x)
        {call}
        loss = F.cross_entropy(out, y){used}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(meter.compute())
    tested = Ranks()
    for x, y in test_loader:
        tested.update(model(x), y)
    print(tested.compute())
"""
UPDATE = "meter.update(out, y)"


def of_keeper(more: str = "", call: str = UPDATE, used: str = "") -> str:
    lines = "\n".join(f"        {line}" if line[:1] != "-" else line[1:] for line in more.splitlines())
    return KEEPER.format(more=lines, call=call, used=used)


@pytest.mark.parametrize(
    ("more", "call"),
    [
        ("", UPDATE),
        ("", "meter.update(y=y, out=out)"),
        ("self.count += len(out)", UPDATE),
        ("", f"{UPDATE}\n        print(meter.compute())"),
    ],
)
def test_an_object_keeps_samples_of_all_ranks_for_what_it_measures(more: str, call: str) -> None:
    found = followed(of_keeper(more, call))
    assert not found.problems
    rows = {node for node, each in found.found.reductions.items() if {one.kind for one in each} == {"rows"}}
    assert {ast.unparse(node) for node in rows} == {"out", "y"}
    assert not rows & found.found.read_same


GETTER = "-    def last(self):\n-        return self.outs[-1]"
PENALTY = "self.whole.append(out)\n-    def penalty(self):\n-        return torch.cat(list(self.whole)).pow(2).mean()"
ADDS = "-    def add(self, out):\n-        self.outs.append(out)\n-        return out"
ENTRY = "-    def __getitem__(self, at):\n-        return self.outs[at]"
DECORATED = "-    @property\n-    def last(self):\n-        return self.outs[-1]"


@pytest.mark.parametrize(
    ("more", "call", "used"),
    [
        ("", UPDATE, " + ((out - meter.outs[-1]) ** 2).mean()"),
        ("", UPDATE, " + ((out - last(meter)) ** 2).mean()"),
        ("", UPDATE, " + ((out - getattr(meter, 'outs')[-1]) ** 2).mean()"),
        ("", UPDATE, " + out.mean() * meter.outs[-1].mean()"),
        (GETTER, UPDATE, " + ((out - meter.last()) ** 2).mean()"),
        (DECORATED, UPDATE, " + ((out - meter.last) ** 2).mean()"),
        (PENALTY, UPDATE, " + meter.penalty()"),
        (ADDS, f"{UPDATE}; meter.add(out)", ""),
        (ENTRY, UPDATE, " + (out - meter[-1]).pow(2).mean()"),
        ("", "with torch.no_grad(): meter.update(out, y)", ""),
        ("", "meter.outs.append(out.detach()); meter.ys.append(y)", ""),
    ],
)
def test_an_object_of_which_samples_come_out_is_refused(more: str, call: str, used: str) -> None:
    assert is_refused(of_keeper(more, call, used))


@pytest.mark.parametrize("more", ["y.mul_(2)", "-    def halve(self):\n-        self.outs[-1].mul_(0.5)"])
def test_an_object_that_may_change_what_it_has_put_in_a_list(more: str) -> None:
    found = reasons(of_keeper(more, f"{UPDATE}; meter.halve()" if "halve" in more else UPDATE))
    assert any("would be done with a copy of it" in each for each in found)


LISTS = """\
import numpy as np


def rates(trues, guesses):
    trues, guesses = np.array(trues), np.array(guesses)
    return max((guesses[trues == each] == each).mean() for each in np.unique(trues))


for epoch in range(2):
    trues, guesses = [], []
    for x, y in train_loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        trues.extend(y.numpy())
        guesses.extend(out.argmax(1).numpy())
    print(rates(trues, guesses))
    trues, guesses = [], []
    for x, y in test_loader:
        trues.extend(y.numpy())
        guesses.extend(model(x).argmax(1).numpy())
    print(rates(trues, guesses))
"""


def test_lists_of_samples_are_brought_together_where_training_gives_them() -> None:
    found = followed(LISTS)
    rows = {node for node, each in found.found.reductions.items() if {one.kind for one in each} == {"rows"}}
    assert {ast.unparse(node) for node in rows} == {"trues", "guesses"} and not found.problems
    assert all(isinstance(found.found.scripts[node].scope(node), ast.Module) for node in rows)


@pytest.mark.parametrize(
    "line",
    ["trues.append(0)", "kept = trues; kept.clear()", "np.random.shuffle(trues)", "trues.sort()", "trues[0] = 1"],
)
def test_a_function_that_may_change_its_lists_is_refused(line: str) -> None:
    head, rest = LISTS.split("    trues, guesses = np.array", 1)
    assert reasons(f"{head}    {line}\n    trues, guesses = np.array{rest}")
