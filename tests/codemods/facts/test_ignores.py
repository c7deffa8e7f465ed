"""The comments that switch rules off."""

from __future__ import annotations

from ddpify_codemods.facts.ignores import ignored, skips_file


def test_a_line_switches_off_some_rules_or_all() -> None:
    text = "a\nb  # ddpify: ignore[DDP105, DDP101]\nc  # ddpify: ignore\r\nd"
    assert ignored(text) == {2: {"DDP105", "DDP101"}, 3: {""}}
    assert ignored("# nothing") == {}


def test_a_file_is_skipped_by_a_comment_with_a_line_of_its_own() -> None:
    assert skips_file("import os\n  # ddpify: skip-file\n")
    assert not skips_file("x = '# ddpify: skip-file'")
