"""Pictures that a collate function pads to the largest of them."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.pictures import pictures

from tests.codemods.checks import script_of

CODE = """\
def cat_list(images, value=0):
    {sizes}
    padded = {made}
    for image, place in zip(images, padded):
        {writes}
    return padded
"""
LARGEST = "largest = tuple(max(s) for s in zip(*[image.shape for image in images]))"
SIZES = f"{LARGEST}\n    shape = (len(images),) + largest"
MADE = "images[0].new(*shape).fill_(value)"
WRITES = "place[..., :image.shape[-2], :image.shape[-1]].copy_(image)"


@pytest.mark.parametrize(
    ("sizes", "made", "writes", "dimensions"),
    [
        (SIZES, MADE, WRITES, (-2, -1)),
        (SIZES, "images[0].new_full(shape, value)", WRITES, (-2, -1)),
        (LARGEST, "images[0].new_zeros((len(images),) + largest)", WRITES, (-2, -1)),
        (SIZES, MADE, "place[..., :image.shape[-1]].copy_(image)", (-1,)),
        (SIZES, MADE, "place[:image.shape[0], :image.shape[1]].copy_(image)", (1, 2)),
        (
            "largest = [max(s) for s in zip(*[image.shape for image in images])]\n    shape = [len(images)] + largest",
            MADE,
            WRITES,
            (-2, -1),
        ),
        (SIZES.replace("max(s)", "min(s)"), MADE, WRITES, ()),
        (SIZES.replace("max(s) for s", "max(a, b) for a, b"), MADE, WRITES, ()),
        (SIZES.replace("+ largest", "+ largest[:2]"), MADE, WRITES, ()),
        (SIZES, MADE.replace(".fill_(value)", ""), WRITES, ()),
        (SIZES, MADE, WRITES.replace("image.shape[-1]", "image.shape[-2]"), ()),
        (SIZES, MADE, WRITES.replace(":image.shape[-1]", "-image.shape[-1]:"), ()),
        (SIZES, MADE, WRITES.replace("copy_(image)", "copy_(2 * image)"), ()),
        (SIZES, MADE, f"{WRITES}\n        place[0] = 1", ()),
        (f"images = images[1:]\n    {SIZES}", "others[0].new(*shape).fill_(value)", WRITES, ()),
        (f"{SIZES}\n    shape = (len(images), 3, 9, 9)", MADE, WRITES, ()),
    ],
)
def test_the_dimensions_along_which_pictures_are_padded(
    sizes: str, made: str, writes: str, dimensions: tuple[int, ...]
) -> None:
    script = script_of(CODE.format(sizes=sizes, made=made, writes=writes))
    found = pictures(script, script.tree.body[0])
    assert (found.dimensions if found is not None else ()) == dimensions
