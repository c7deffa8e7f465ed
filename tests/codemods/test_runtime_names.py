"""The import of ddpify_runtime that a set of edits needs."""

from __future__ import annotations

import ast

from ddpify_codemods.rule import Insert
from ddpify_codemods.runtime_names import (
    from_imports,
    import_from,
    imports_runtime,
    runtime_aliases,
    runtime_import,
    runtime_name,
    shown,
    with_names,
)


def test_what_a_file_imports() -> None:
    tree = ast.parse("from ddpify_runtime import DistributedDataParallel as DDP, DataLoader")
    assert runtime_aliases(tree) == {"DDP": "DistributedDataParallel", "DataLoader": "DataLoader"}
    assert runtime_name(ast.Name("DDP"), {"DDP": "DistributedDataParallel"}) == "DistributedDataParallel"
    assert runtime_name(ast.Name("print"), {"DDP": "DistributedDataParallel"}) == ""
    assert imports_runtime(tree) and not imports_runtime(ast.parse("import torch"))
    assert runtime_aliases(ast.parse("import torch")) is None


def test_names_are_added_to_the_import_that_is_there() -> None:
    tree = ast.parse("from ddpify_runtime import DataLoader")
    statement = tree.body[0]
    assert isinstance(statement, ast.ImportFrom)
    assert with_names(statement, ["all_reduce"]).code.split() == [
        "from",
        "ddpify_runtime",
        "import",
        "DataLoader,",
        "all_reduce",
    ]


def test_a_name_that_the_file_has_gets_another() -> None:
    tree = ast.parse("DataLoader = 3\nx = DataLoader")
    edits, renamed = runtime_import(tree, [Insert(tree.body[1], "DataLoader()", "", imports=("DataLoader",))])
    assert len(edits) == 1 and renamed["DataLoader"] != "DataLoader"
    assert runtime_import(tree, [Insert(tree.body[1], "x = 4", "")]) == ([], {})


def test_imports_as_isort_has_them() -> None:
    assert from_imports(["b", "a"]) == ["from ddpify_runtime import a, b"]
    long = import_from("torch.distributed", [f"name_{'x' * 20}{number}" for number in range(6)])
    assert long.startswith("from torch.distributed import (\n    name_")
    assert shown(ast.alias("a", "b")) == "a as b"


def test_a_module_that_is_imported_after_its_first_use_is_imported_before() -> None:
    tree = ast.parse("import torch\nfor x in range(3):\n    print(x)\nimport os\ny = 2\n")
    early = Insert(tree.body[0], "print(os.sep)", "", "after", modules=("import os",))
    late = Insert(tree.body[3], "print(os.sep)", "", modules=("import os",))
    assert runtime_import(tree, [late]) == ([], {})
    (added,) = runtime_import(tree, [early, late])[0]
    assert isinstance(added, Insert) and added.code.strip() == "import os" and added.at is tree.body[0]
