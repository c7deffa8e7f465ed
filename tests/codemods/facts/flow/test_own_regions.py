"""Each rank goes its own way by numbers that it has drawn, where nothing is for the others."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, plain, refusals

DATA = """\
class Drawn(torch.utils.data.Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, index):
        x, y = test_set[index]
        return x + torch.rand(4), y


test_loader = DataLoader(Drawn(), batch_size=8)
rate = 1.0
"""
TRAINING = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")
EVALUATION = """\
    found, best = [], 0.0
    for x, y in test_loader:
        out = model(x)
        for i in range(len(out)):
            {each}
    {after}
"""


def converted(each: str, after: str = "print(len(found), best)") -> str:
    result = plain(HEAD + DATA + TRAINING + EVALUATION.format(each=each, after=after))
    return " ".join(refusals(result)) if refusals(result) else result.code


@pytest.mark.parametrize(
    "each",
    [
        "if out[i].argmax() == y[i]: found.append(out[i].max().item())",
        "best = out[i].max() if out[i].max() > best else best",
        "found += [1] if out[i].sum() > 0 and out[i].max() < 1 else []",
        "found.append(sum(1 for k in range(int(out[i].argmax()))))",
    ],
)
def test_each_sample_is_decided_by_each_rank(each: str) -> None:
    code = converted(each)
    assert "for x, y in test_loader:" in code and each in code and "from_rank_0" not in code


@pytest.mark.parametrize(
    "after", ["if len(found) > 3: rate = 0.5", "if found: rate = 0.5", "if best > 0.4: rate = 0.5"]
)
def test_what_follows_is_decided_as_rank_0_does(after: str) -> None:
    each = "if out[i].argmax() == y[i]: found.append(1); best = out[i].max().item()"
    assert "if from_rank_0(" in converted(each, f"{after}\n    optimizer.param_groups[0]['lr'] *= rate")


@pytest.mark.parametrize(
    "each",
    [
        "if out[i].argmax() == y[i]: torch.save(out[i], 'x.pt')",
        "if out[i].argmax() == y[i]: optimizer.param_groups[0]['lr'] *= 0.9",
        "if out[i].argmax() == y[i]: model.weight.data.clamp_(-1, 1)",
        "if out[i].argmax() == y[i]: print(loss.item())",
        "if out[i].argmax() == y[i]: model.count = 1",
        "if out[i].argmax() == y[i]: raise ValueError",
    ],
)
def test_what_is_for_all_ranks_is_refused(each: str) -> None:
    assert "is read" in converted(each)


def test_a_turn_that_ends_by_drawn_numbers_is_each_ranks_own() -> None:
    code = converted("if out[i].sum() > 1: break", "print(best)")
    assert "if out[i].sum() > 1: break" in code
    assert "is read" in converted("if out[i].sum() > 1: break\n            optimizer.step()", "print(best)")


BEGINS = """\
class Meter:
    def __init__(self):
        self.total, self.count = None, 0
    def update(self, out):
        {begins}
        self.total += out.sum(0)
"""


def begun(begins: str, after: str = "print(meter.total)") -> str:
    each = "if out[i].argmax() == y[i]: found.append(1)"
    evaluation = EVALUATION.replace("        for i", "        meter.update(out)\n        for i")
    meter = BEGINS.format(begins=begins) + "meter = Meter()\n"
    result = plain(HEAD + DATA + meter + TRAINING + evaluation.format(each=each, after=after))
    return " ".join(refusals(result)) if refusals(result) else result.code


@pytest.mark.parametrize("zeros", ["torch.zeros(3)", "torch.zeros(3, dtype=out.dtype, device=out.device)"])
def test_a_rank_begins_what_it_adds_up(zeros: str) -> None:
    code = begun(f"if self.total is None: self.total = {zeros}")
    assert "if self.total is None:" in code and "print(meter.total)" in code
    decided = begun(f"if self.total is None: self.total = {zeros}", "if meter.total.sum() > 9: rate = 0.5")
    assert "if from_rank_0(bool(meter.total.sum() > 9))" in decided


@pytest.mark.parametrize(
    "begins",
    [
        "if self.total is None: self.total = torch.rand(3)",
        "if self.total is None: self.total = model(x)",
        "if self.total is None: self.total, self.count = torch.zeros(3), 1",
        "if self.total is None: self.total = torch.zeros(3); optimizer.step()",
        "if self.total is None: self.other = torch.zeros(3)",
        "if self.total is not None: self.count = 1",
    ],
)
def test_more_than_that_is_decided_by_all(begins: str) -> None:
    assert "is read here" in begun(begins)


COUNT = """\
def count(found):
    seen = {}
    for each in found:
        if each in seen:
            seen[each] += 1
        else:
            seen[each] = 1
    return seen


"""


@pytest.mark.parametrize(("decides", "sent"), [("len(seen) > 1", True), ("print(seen)", False)])
def test_what_a_rank_has_counted_by_its_own_keys_is_not_asked_of_rank_0(decides: str, sent: bool) -> None:
    """Rank 0's `each in seen` was sent for each sample, and ended in a KeyError where a rank had other ones."""
    after = f"seen = count(found)\n    {f'if {decides}: rate = 0.5' if sent else decides}"
    evaluation = EVALUATION.replace("        for i in", "        found += out.argmax(1).tolist()\n        for i in")
    each = "pass"
    result = plain(HEAD + COUNT + DATA + TRAINING + evaluation.format(each=each, after=after))
    assert not refusals(result) and "if each in seen:" in result.code
    assert (f"from_rank_0(bool({decides}))" in result.code) is sent


def test_turns_over_what_each_rank_has_counted_are_not_for_all() -> None:
    """Ranks came to the barrier unequally often, and waited for ever."""
    after = "for each in count(found): torch.save(model.state_dict(), f'{each}.pt')"
    evaluation = EVALUATION.replace("        for i in", "        found += out.argmax(1).tolist()\n        for i in")
    result = plain(HEAD + COUNT + DATA + TRAINING + evaluation.format(each="pass", after=after))
    assert refusals(result)
