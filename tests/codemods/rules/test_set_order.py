"""DDP401: sets that are put into an order."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.convert.set_order import RULE

from ..checks import assert_silent, findings_of


@pytest.mark.parametrize(
    "source",
    [
        "words = sorted(set(text))",
        "words = sorted(list(set(text)))",
        "n = len(list(set(text)))",
        "words = list(set(text))\nwords.sort()",
        "x = 'a' in set(text)",
        "words = list(text)",
        "vocab = set(text)\nvocab = sorted(vocab)\nids = list(vocab)",
        "words = sorted([w for w in set(text)])",
        "words = sorted(set(text), key=lambda w: (count[w], w))",
        "words = sorted(set(text), key=str.lower)",
        "for w in set(text):\n    seen[w] = 0\n    n += 1",
        "same = {w: len(w) for w in set(text)}",
        "n = sum(len(w) for w in set(text))",
        "words = [*text]",
        "both = ' '.join(text)",
        "stack.pop()",
        "done = list(set(range(len(words))) - set(open_ones))",
        "rest = list(set(range(9)).difference(chosen))",
        "groups.append(set(text))",
        "groups.insert(0, set(text) - {'a'})",
    ],
)
def test_no_order_is_made_of_a_set(source: str) -> None:
    assert_silent(RULE, source)


@pytest.mark.parametrize(
    "source",
    [
        "words = list(set(text))",
        "ids = {w: i for i, w in enumerate(set(text))}",
        "vocab = {w for w in text}\nids = tuple(vocab)",
        "vocab = set(text)\nfor i, w in enumerate(vocab):\n    ids[w] = i",
        "for w in set(text):\n    ids[w] = len(ids)",
        "for w in set(text):\n    ids[w] = n\n    n += 1",
        "for w in set(text) - {'a'}:\n    words.append(w)",
        "words = sorted(set(text), key=len)",
        "words = sorted(list(set(text)), key=lambda w: count[w])",
        "rest = list(set(words) - set(range(9)))",
        "both = list(set(range(9)) | set(words))",
        "longest = max(set(text).union(more), key=counts.get)",
        "words = [w for w in set(text) if w]",
        "words = [*set(text)]",
        "words.extend(set(text))",
        "words += set(text)",
        "text = ' '.join(set(text))",
        "vocab = set(text)\nfirst = vocab.pop()",
        "d = {k: set(v) for k, v in rows}\nids = {k: {w: i for i, w in enumerate(v)} for k, v in d.items()}",
    ],
)
def test_an_order_is_made(source: str) -> None:
    assert [(finding.rule, finding.severity) for finding in findings_of(RULE, source)] == [("DDP401", "warning")]


@pytest.mark.parametrize(
    ("source", "other"),
    [
        ("keep = [name for name in names if hash(name) % 10 < 8]", True),
        ("class Word:\n    def __hash__(self):\n        return hash(self.text)", False),
        ("def hash(text):\n    return 3\n\n\nkeep = hash(name)", False),
        ("keep = hashlib.md5(name).digest()", False),
    ],
)
def test_what_hash_makes_of_a_string(source: str, other: bool) -> None:
    assert bool(findings_of(RULE, source)) is other
