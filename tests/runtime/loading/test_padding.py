"""Batches that are padded to the longest sample: a rank pads the samples that it loads to the longest of all ranks."""

from __future__ import annotations

import sys
import warnings
from collections import UserDict
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest
import torch
from ddpify_runtime import DataLoader
from ddpify_runtime.loading import collated, padding
from ddpify_runtime.loading.padding import Rows
from ddpify_runtime.sharding import exchange
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, default_collate

from tests.runtime.loading.stateful import LOADED
from tests.runtime.processes import run

BOTH = frozenset(("after", "before"))


@pytest.mark.parametrize(
    "whole, side, value",
    [
        (torch.tensor([[1, 2, 3], [4, 0, 0]]), {"after"}, 0),
        (torch.tensor([[1, 2, 3], [-100, -100, 4]]), {"before"}, -100),
        (torch.tensor([[True, True, True], [True, False, False]]), {"after"}, False),
        (torch.tensor([[1.0, 2.0, 3.0], [4.0, float("nan"), float("nan")]]), {"after"}, float("nan")),
        (torch.zeros(2, 3, dtype=torch.int64), BOTH, 0),
        (torch.tensor([[2**62 + 1] * 3, [5, 2**62 + 1, 2**62 + 1]]), {"after"}, 2**62 + 1),
    ],
)
def test_what_is_padded_is_seen_in_its_parts(whole: Tensor, side: set[str], value: Any) -> None:
    parts = [whole[:1], whole[1:, :1] if "after" in side else whole[1:, 2:]]
    found = padding.seen(whole, parts)
    assert found is not None and found.sizes == (None,) and found.sides == side
    assert found.value == value or (found.value != found.value and value != value)
    one_side = found._replace(sides=frozenset(sorted(side)[:1]))
    made = [padding.padded(part, one_side, iter([3])) for part in parts]
    assert torch.equal(torch.cat(made).nan_to_num(7), whole.nan_to_num(7)) and made[1].dtype == whole.dtype


def test_images_are_padded_along_both_sides() -> None:
    images = [torch.ones(3, 4, 6), torch.ones(3, 5, 2)]
    whole = torch.stack([pad(image, (0, 6 - image.size(2), 0, 5 - image.size(1))) for image in images])
    found = padding.seen(whole, [image[None] for image in images])
    assert found == Rows((3, None, None), 0.0, frozenset(["after"]))
    assert torch.equal(padding.padded(images[1][None], found, iter([5, 6])), whole[1:])


@pytest.mark.parametrize(
    "whole, parts",
    [
        ([[1, 2, 3, 0], [4, 0, 0, 0]], [[[1, 2, 3]], [[4]]]),  # longer than the longest
        ([[1, 2, 3], [4, 4, 0]], [[[1, 2, 3]], [[4]]]),  # with one number here, another one there
        ([[1, 2, 3], [9, 0, 0]], [[[1, 2, 3]], [[4]]]),  # other samples
        ([[1, 2, 3], [4, 0, 0]], [[[1, 2, 3], [4, 0, 0]], [[4]]]),  # other numbers of samples
        ([[1, 2, 3], [0, 4, 0]], [[[1, 2, 3]], [[4]]]),  # in the middle
    ],
)
def test_what_is_not_padded_so_is_told(whole: list[Any], parts: list[Any]) -> None:
    assert padding.seen(torch.tensor(whole), [torch.tensor(part) for part in parts]) is None


def test_batches_agree_upon_padding() -> None:
    alike, one, other = Rows((3, 8)), Rows((3, None), 0, frozenset(["after"])), Rows((3, None), 0, BOTH)
    assert padding.merged(alike, Rows((3, 9))) == Rows((3, None))
    assert padding.merged(alike, one) == one == padding.merged(other, one)
    assert padding.merged(one, Rows((3, None), 1, BOTH)) is None
    assert padding.merged(one, Rows((3, None), 0, frozenset(["before"]))) is None
    assert padding.merged(one, Rows((4, None), 0, BOTH)) == Rows((None, None), 0, frozenset(["after"]))
    assert padding.merged(one, Rows((3,))) is None


def test_sides_are_told_by_what_is_padded_beside() -> None:
    after, before = (Rows((None,), 0, frozenset([side])) for side in ("after", "before"))
    either, unseen = Rows((None,), 0), Rows((None,))
    assert collated.sided({"ids": before, "types": [either, Rows((3,)), "entries"]}) == {
        "ids": before,
        "types": [before, Rows((3,)), "entries"],
    }
    assert collated.sided([after, before]) == [after, before]
    assert (
        collated.sided([after, before, either]) is collated.sided([either]) is collated.sided([after, unseen]) is None
    )


class Texts(Dataset[tuple[Tensor, int]]):
    """53 texts of 1 to 13 words; counts what is loaded."""

    def __len__(self) -> int:
        return 53

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        LOADED.add()
        return torch.arange(1, 2 + index * 7 % 13), index


def after(samples: list[Any]) -> Any:
    texts, labels = zip(*samples, strict=True)
    return pad_sequence(list(texts), batch_first=True, padding_value=-7), torch.tensor(labels)


def before(samples: list[Any]) -> Any:
    """As tokenizers of language models do, nested; token types are the same on either side."""
    texts, labels = zip(*samples, strict=True)
    ids = pad_sequence(list(texts), batch_first=True, padding_side="left")
    fields = {"ids": ids, "mask": ids != 0, "types": torch.zeros_like(ids)}
    return {"inputs": [fields, [str(label) for label in labels]], "labels": torch.tensor(labels)}


class Encoding(UserDict[str, Any]):
    """As transformers' BatchEncoding."""

    def __init__(self, fields: dict[str, Any], name: str) -> None:
        super().__init__(fields)
        self.name = name


def of_eight(samples: list[Any]) -> Encoding:
    """To a multiple of eight, as `pad_to_multiple_of=8`."""
    texts, labels = zip(*samples, strict=True)
    ids = pad_sequence(list(texts), batch_first=True)
    return Encoding({"ids": pad(ids, (0, -ids.size(1) % 8)), "labels": torch.tensor(labels)}, "words")


def values(batch: Any) -> Any:
    """A batch as lists, with the types of what holds them."""
    if isinstance(batch, Tensor):
        assert batch.size(0) == len(batch.tolist())
        return batch.shape, batch.dtype, batch.tolist()
    if isinstance(batch, (dict, UserDict)):
        name = batch.name if isinstance(batch, Encoding) else type(batch).__name__
        return name, {key: values(each) for key, each in batch.items()}
    return [values(each) for each in batch] if isinstance(batch, (list, tuple)) else batch


def two_passes(collate: Callable[[list[Any]], Any], workers: int, read: Any = iter) -> tuple[Any, str]:
    LOADED.set(0)
    torch.manual_seed(1)
    loader = DataLoader(Texts(), batch_size=10, shuffle=True, collate_fn=collate, num_workers=workers)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [values(batch) for _ in range(2) for batch in read(loader)]
    return found, "".join(str(each.message) for each in caught if "loaded whole" in str(each.message))


@pytest.fixture(autouse=True)
def random_numbers_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "")


@pytest.mark.parametrize("collate", [after, before, of_eight])
@pytest.mark.parametrize("ranks, workers", [(2, 0), (3, 2), (4, 0)])
def test_each_rank_loads_its_texts(collate: Any, ranks: int, workers: int) -> None:
    """The first four batches whole, then its part of each of ten, and what is left of 3 if they are enough for all."""
    ((alone, _),) = run(1, two_passes, collate, workers)
    assert run(ranks, two_passes, collate, workers) == [(alone, "")] * ranks
    if not workers:
        left = [len(range(rank, 3, ranks)) if ranks < 4 else 3 for rank in range(ranks)]
        assert LOADED.of(ranks) == [40 + 6 * len(range(rank, 10, ranks)) + 2 * left[rank] for rank in range(ranks)]


def collectives_of_a_pass() -> list[torch.Size]:
    """The sizes of what the ranks send to each other while they load what they have learnt to load in parts."""
    loader, sent, parts = DataLoader(Texts(), batch_size=10, collate_fn=before), [], exchange.parts

    def noted(tensor: Tensor) -> list[Tensor]:
        sent.append(tensor.shape)
        return parts(tensor)

    for _ in loader:
        pass
    vars(exchange)["parts"] = noted
    for batch in loader:
        assert len(batch["labels"]) in (10, 3)
    return sent


def test_ranks_meet_once_for_each_padded_batch() -> None:
    """And once for the pass, to see that they draw the same batches. Three tensors are padded."""
    assert run(2, collectives_of_a_pass) == [[torch.Size([2])] + [torch.Size([4])] * 6] * 2


def by_length(samples: list[Any]) -> Any:
    return after(sorted(samples, key=lambda sample: len(sample[0])))


def with_its_length(samples: list[Any]) -> Any:
    texts, labels = after(samples)
    return texts, texts.size(1), labels


@pytest.mark.parametrize("collate", [by_length, with_its_length])
def test_what_cannot_be_told_from_its_parts_is_loaded_whole(collate: Any) -> None:
    ((alone, _),) = run(1, two_passes, collate, 0)
    for found, said in run(2, two_passes, collate, 0):
        assert found == alone and "does not have one row for each sample" in said
    assert LOADED.of(2) == [106, 106]


def default(samples: list[Any]) -> Any:
    """torch's own, which this script has taught to pad: one batch does not show with what."""
    return default_collate(samples)


def taught(collate: Any) -> tuple[Any, str]:
    taught: Any = sys.modules["torch.utils.data._utils.collate"]
    taught.default_collate_fn_map[Tensor] = lambda batch, **_: pad_sequence(list(batch), batch_first=True)
    return two_passes(collate, 0)


def test_padding_by_default_collate_is_loaded_whole() -> None:
    ((alone, _),) = run(1, taught, default_collate)
    for found, said in run(2, taught, default_collate):
        assert found == alone and "does not have one row for each sample" in said
    assert run(2, taught, default) == [(alone, "")] * 2


def in_a_thread(loader: Any) -> Iterator[Any]:
    """As libraries that read ahead do."""
    read: list[Any] = []
    batches = iter(loader)
    thread = Thread(target=lambda: read.extend(map(values, batches)))
    thread.start()
    thread.join()
    return iter(read)


def test_a_thread_reads_whole_batches() -> None:
    """Ranks agree upon lengths by a collective, which must not meet those of the main thread."""
    ((alone, _),) = run(1, two_passes, after, 0, in_a_thread)
    for found, said in run(2, two_passes, after, 0, in_a_thread):
        assert found == alone and "read in a thread" in said
    assert LOADED.of(2) == [106, 106]


def longer_at_last(samples: list[Any]) -> Any:
    """Another dimension where sample 50 is, which one rank alone loads."""
    texts, labels = after(samples)
    return (texts[..., None] if 50 in labels.tolist() else texts), labels


def stopped() -> str:
    with pytest.raises(RuntimeError) as error:
        for _ in DataLoader(Texts(), batch_size=10, collate_fn=longer_at_last):
            pass
    return str(error.value)


def test_all_ranks_stop_where_one_has_another_form() -> None:
    said = run(2, stopped)
    assert "another process stops at this batch" in said[1] and "a batch has another form or size" in said[0], said
