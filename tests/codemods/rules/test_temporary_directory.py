from __future__ import annotations

from .snippet import check_noop, check_transformed, findings

IMPORTS = "import tempfile\nfrom tempfile import TemporaryDirectory\n"


def test_a_file_of_the_script_s_own_stays() -> None:
    check_noop("with tempfile.TemporaryFile() as file:\n    x = 1", imports=IMPORTS)


def test_all_use_the_same_directory() -> None:
    check_transformed(
        "with TemporaryDirectory() as folder:\n    x = folder",
        """
        with TemporaryDirectory() as folder:
            folder = broadcast(folder)
            x = folder
            barrier()  # all are done with folder
        """,
        imports=IMPORTS,
    )


def test_a_return_comes_last() -> None:
    check_transformed(
        """
        def work():
            with TemporaryDirectory() as folder:
                return folder
        """,
        """
        def work():
            with TemporaryDirectory() as folder:
                folder = broadcast(folder)
                barrier()  # all are done with folder
                return folder
        """,
        imports=IMPORTS,
    )


def test_without_a_block_it_is_a_warning() -> None:
    found = findings("folder = TemporaryDirectory()", imports=IMPORTS)
    assert [(each.rule, each.severity) for each in found] == [("DDP116", "warning")]
