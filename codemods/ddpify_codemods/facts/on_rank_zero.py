"""Libraries whose objects live on rank 0: what records runs, searches for settings, or keeps a database."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .origins import origins
from .own_methods import is_own_module, may_be_own
from .script import Script

# Everything of these.
_RECORDERS = ("wandb.", "mlflow.", "neptune.", "comet_ml.", "aim.", "clearml.", "swanlab.", "trackio.", "dvclive.",
              "tensorboard_logger.")  # fmt: skip
# They draw without a common seed, and call the script's own functions.
_SEARCHES = ("optuna.create_study", "optuna.load_study", "optuna.copy_study", "optuna.delete_study", "optuna.study.",
             "optuna.storages.", "optuna.visualization.", "hyperopt.fmin", "hyperopt.Trials", "skopt.gp_minimize",
             "skopt.forest_minimize", "skopt.gbrt_minimize", "skopt.dummy_minimize", "skopt.Optimizer",
             "nevergrad.optimizers.", "ax.optimize", "ax.service.")  # fmt: skip
_DATABASES = frozenset(
    {"sqlite3.connect", "duckdb.connect", "psycopg2.connect", "psycopg.connect", "pymysql.connect", "MySQLdb.connect"}
    | {"mysql.connector.connect", "sqlalchemy.create_engine", "pymongo.MongoClient"}
)
_CHANGES = re.compile(r"\s*(insert|update|delete|create|replace|drop|alter|merge)\b", re.IGNORECASE)
_CHANGING = frozenset({"commit", "executemany", "executescript", "insert_one", "insert_many", "update_one", "to_sql"})
# Data for a run, which needs none to be made: https://docs.wandb.ai/ref/python/data-types
_DATA = frozenset(f"wandb.{name}" for name in ("Audio", "Histogram", "Html", "Image", "Object3D", "Table", "Video"))
# What a library keeps of the run in its module.
_KEPT = ("wandb.config", "wandb.run", "wandb.summary")


def made_on_rank_zero(script: Script, call: ast.Call) -> bool:
    """Whether a call belongs to such a library: rank 0 makes it, the others read what comes of it."""
    name = script.qualified(call.func)
    if name in _DATABASES:
        return _is_changed(script) and not _is_of_samples(script, call)
    return _is_recorder(name) and not is_own_module(script, name) and not _is_only_named(script, call)


def searches(script: Script, call: ast.Call) -> bool:
    """Whether what a call makes calls functions of the script, or answers what it is asked: a search, a database."""
    name = script.qualified(call.func)
    return name.startswith(_SEARCHES) or name in _DATABASES


def kept_on_rank_zero(script: Script) -> Iterator[ast.Attribute]:
    """Where the script reads what a library keeps: `wandb.config`."""
    for attribute in script.find(ast.Attribute):
        if isinstance(attribute.ctx, ast.Load) and script.qualified(attribute) in _KEPT:
            yield attribute


def _is_recorder(name: str) -> bool:
    return name.startswith((*_RECORDERS, *_SEARCHES)) and not name.startswith(tuple(f"{kept}." for kept in _KEPT))


def _is_only_named(script: Script, call: ast.Call) -> bool:
    """An exception, a decorator, or data made for a method of the library: `run.log({"x": wandb.Image(x)})`."""
    name = script.qualified(call.func)
    is_class = name.rpartition(".")[2][:1].isupper()
    if name in _DATA:
        return True
    child: ast.AST = call
    for parent in script.ancestors(call):
        if isinstance(parent, ast.Raise) or child in getattr(parent, "decorator_list", ()):
            return True
        if isinstance(parent, ast.stmt):
            return False
        if is_class and isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
            return not may_be_own(script, parent.func)
        child = parent
    return False


def _is_changed(script: Script) -> bool:
    for call in script.find(ast.Call):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method in _CHANGING and not may_be_own(script, call.func):
            return True
        if method == "execute" and call.args and any(_is_change(each) for each in origins(script, call.args[0])):
            return True
    return False


def _is_change(text: ast.expr) -> bool:
    first = text.values[0] if isinstance(text, ast.JoinedStr) and text.values else text
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and bool(_CHANGES.match(first.value))


def _is_of_samples(script: Script, call: ast.Call) -> bool:
    """Whether a data set reads its samples from it, each rank its own."""
    return any(
        isinstance(method, ast.FunctionDef) and method.name in ("__getitem__", "__getitems__", "__iter__")
        for owner in script.ancestors(call)
        if isinstance(owner, ast.ClassDef)
        for method in owner.body
    )
