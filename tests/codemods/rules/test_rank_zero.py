from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed, findings, imports_of

IMPORTS = """\
import gzip, io, logging, os, pickle, shutil, subprocess
from logging import handlers
from pathlib import Path
import numpy as np
import matplotlib.pyplot as plt
from torch.utils.tensorboard import SummaryWriter
"""


@pytest.mark.parametrize(
    "lines",
    [
        'text = open("a.txt").read()',
        'with open("a.bin", "rb") as file:\n    pass',
        "net = torch.load('a.pt', map_location='cpu')",
        "buffer = io.BytesIO()\ntorch.save(1, buffer)",
        'text = "a".replace("a", "b")',
        "if os.environ.get('RANK', '0') == '0':\n    torch.save(1, 'a.pt')",
        "def save(path):\n    pass\nsave('a.pt')",
        "class Saver:\n    def save(self, path):\n        pass\nSaver().save('a.pt')",
        "commit = subprocess.check_output(['git', 'rev-parse', 'HEAD'])",
        "table = np.zeros(3)\ntext = table.to_csv()",
        "plt.plot([1, 2])\nplt.close()",
        "os.chdir('..')",
    ],
)
def test_what_writes_nothing_stays(lines: str) -> None:
    check_noop(lines, imports=IMPORTS)


def test_a_name_makes_no_guard() -> None:
    """Every process has this rank, so each would write."""
    lines = "rank = 0\nif rank == 0:\n    {}(1, 'a.pt')"
    check_transformed(lines.format("torch.save"), lines.format("rank_zero_only(torch.save)"), imports=IMPORTS)


def test_a_cache_filled_sample_by_sample_stays() -> None:
    check_noop(
        """
        class Images:
            def __getitem__(self, index):
                return self.cached(index)

            def cached(self, index):
                if not os.path.exists("a.npy"):
                    np.save("a.npy", np.zeros(3))
        """,
        imports=IMPORTS,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.save(1, 'a.pt')", "rank_zero_only(torch.save)(1, 'a.pt')"),
        ("np.savetxt('a.txt', np.zeros(3))", "rank_zero_only(np.savetxt)('a.txt', np.zeros(3))"),
        ("os.makedirs('a', exist_ok=True)", "rank_zero_only(os.makedirs)('a', exist_ok=True)"),
        ("shutil.rmtree('a')", "rank_zero_only(shutil.rmtree)('a')"),
        ("Path('a').mkdir()", "rank_zero_only(Path('a').mkdir)()"),
        ("(Path('a') / 'b').write_text('x')", "rank_zero_only((Path('a') / 'b').write_text)('x')"),
        ("plt.savefig('a.png')\nplt.show()", "rank_zero_only(plt.savefig)('a.png')\nrank_zero_only(plt.show)()"),
        ("figure = plt.figure()\nfigure.savefig('a.png')",
         "figure = plt.figure()\nrank_zero_only(figure.savefig)('a.png')"),
        ("image = None\nimage.save('a.png')", "image = None\nrank_zero_only(image.save)('a.png')"),
        ("writer = SummaryWriter('runs')", "writer = rank_zero_only(SummaryWriter)('runs')"),
        ("done = subprocess.run(['ls'], capture_output=True)",
         "done = rank_zero_value(subprocess.run)(['ls'], capture_output=True)"),
        ("Path('a').rename('b')", "rank_zero_only(Path('a').rename)('b')"),
        ("Path('a').chmod(0o644)", "rank_zero_only(Path('a').chmod)(0o644)"),
        ("with open('a', 'a'):\n    os.utime('a', None)",
         "with open(rank_zero_path('a'), 'a'):\n    rank_zero_only(os.utime)('a', None)"),
        ("traced = torch.profiler.tensorboard_trace_handler('a')",
         "traced = rank_zero_only(torch.profiler.tensorboard_trace_handler)('a')"),
        ("subprocess.run(['ls'])", "rank_zero_only(subprocess.run)(['ls'])"),
    ],
)  # fmt: skip
def test_the_function_is_wrapped(before: str, after: str) -> None:
    check_transformed(before, after, imports=IMPORTS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("log = open('a.csv', 'w')", "log = open(rank_zero_path('a.csv'), 'w')"),
        ("log = open('a.csv', mode='a')", "log = open(rank_zero_path('a.csv'), mode='a')"),
        ("log = open(file='a.csv', mode='x')", "log = rank_zero_only(open)(file='a.csv', mode='x')"),
        ("log = handlers.RotatingFileHandler('a')", "log = handlers.RotatingFileHandler(rank_zero_path('a'))"),
        ("log = gzip.open('a.gz', 'wt')", "log = gzip.open(rank_zero_path('a.gz'), 'wt')"),
        ("handler = logging.FileHandler('a.log')", "handler = logging.FileHandler(rank_zero_path('a.log'))"),
        ("logging.basicConfig(filename='a.log')", "logging.basicConfig(filename=rank_zero_path('a.log'))"),
        ("with open('a.txt', 'w') as file:\n    file.write('x')",
         "with open(rank_zero_path('a.txt'), 'w') as file:\n    file.write('x')"),
        ("with Path('a.txt').open('w') as file:\n    file.write('x')",
         "with rank_zero_only(Path('a.txt').open)('w') as file:\n    file.write('x')"),
    ],
)  # fmt: skip
def test_the_path_of_an_open_file_is_wrapped(before: str, after: str) -> None:
    check_transformed(before, after, imports=IMPORTS)


def test_all_wait_for_a_file_that_may_be_read_back() -> None:
    check_transformed(
        """
        with open("a.pkl", "wb") as file:
            pickle.dump(1, file)
        """,
        """
        with open(rank_zero_path("a.pkl"), "wb") as file:
            pickle.dump(1, file)
            rank_zero_only(file.close)()
        """,
        imports=IMPORTS,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('''
         with open("a.json") as file:
             text = file.read()
         with open("a.json", "w") as file:
             file.write(text)
         ''', '''
         with open("a.json") as file:
             text = file.read()
         with open(rank_zero_path("a.json", wait=True), "w") as file:
             file.write(text)
             rank_zero_only(file.close)()
         '''),
        ('''
         held = pickle.load(open("a.pkl", "rb"))
         pickle.dump(held, open("a.pkl", "wb"))
         ''', '''
         held = pickle.load(open("a.pkl", "rb"))
         pickle.dump(held, open(rank_zero_path("a.pkl", wait=True), "wb"))
         barrier()
         '''),
        ('''
         runs = len(open("a.txt").readlines())
         open("a.txt", "a").write("one more")
         ''', '''
         runs = len(open("a.txt").readlines())
         open(rank_zero_path("a.txt", wait=True), "a").write("one more")
         barrier()
         '''),
        ('''
         def save(path):
             file = open(path, "w")
             try:
                 file.write("x")
             finally:
                 file.close()
         def load(path):
             return open(path).read()
         ''', '''
         def save(path):
             file = open(rank_zero_path(path, wait=True), "w")
             try:
                 file.write("x")
             finally:
                 file.close()
             barrier()
         def load(path):
             return open(path).read()
         '''),
        ('''
         try:
             text = open("a.txt").read()
         except FileNotFoundError:
             open("a.txt", "w").write("first")
         ''', '''
         try:
             text = open("a.txt").read()
         except FileNotFoundError:
             open(rank_zero_path("a.txt", wait=True), "w").write("first")
             barrier()
         '''),
        ('''
         text = open("a.txt").read()
         try:
             open("a.txt", "w").write(text)
         except OSError:
             print("no place")
         ''', '''
         text = open("a.txt").read()
         try:
             open(rank_zero_path("a.txt", wait=True), "w").write(text)
         except OSError:
             print("no place")
         barrier()
         '''),
    ],
)  # fmt: skip
def test_all_have_read_a_file_before_it_is_written_anew(before: str, after: str) -> None:
    check_transformed(before, after, imports=IMPORTS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('''
         with open("log.txt", "a") as file:
             file.write("x")
         text = open("log.txt").read()
         ''', '''
         with open(rank_zero_path("log.txt"), "a") as file:
             file.write("x")
             rank_zero_only(file.close)()
         text = open("log.txt").read()
         '''),
        ('''
         file = open("log.txt", "w")
         file.write("x")
         file.close()
         ''', '''
         file = open(rank_zero_path("log.txt"), "w")
         file.write("x")
         file.close()
         '''),
        ('''
         def save():
             open("a.txt", "w").write("x")
         threading.Thread(target=save).start()
         text = open("a.txt").read()
         ''', '''
         def save():
             open(rank_zero_path("a.txt"), "w").write("x")
         threading.Thread(target=save).start()
         text = open("a.txt").read()
         '''),
        ('''
         text = open("a.txt").read()
         try:
             print(text)
         except Exception:
             open("a.txt", "w").write(text)
         ''', '''
         text = open("a.txt").read()
         try:
             print(text)
         except Exception:
             open(rank_zero_path("a.txt"), "w").write(text)
         '''),
    ],
)  # fmt: skip
def test_no_rank_waits_where_none_reads_or_one_comes_alone(before: str, after: str) -> None:
    check_transformed(before, after, imports=IMPORTS + "import threading\n")


def test_arguments_are_evaluated_everywhere() -> None:
    check_transformed(
        "torch.save(nn.Linear(1, 1).state_dict(), 'a.pt')",
        "rank_zero_only(torch.save)(nn.Linear(1, 1).state_dict(), 'a.pt')",
    )


def test_only_used_names_are_imported() -> None:
    above = imports_of("torch.save(1, 'a.pt')")
    assert "rank_zero_only" in above
    assert "rank_zero_path" not in above


def test_an_unknown_mode_is_a_note() -> None:
    assert [each.severity for each in findings("mode = input.mode\nfile = open('a', mode)")] == ["note"]


def test_a_file_that_is_read_and_written_at_once_is_a_warning() -> None:
    assert [each.severity for each in findings("file = open('a', 'r+')")] == ["warning"]


LIBRARIES = """\
import optuna, requests, sqlite3, wandb
from hyperopt import fmin, hp
from sqlite3 import connect
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("rate = wandb.config.lr", "rate = rank_zero_only(getattr)(wandb, \"config\").lr"),
        ("wandb.run.summary['a'] = 1", "rank_zero_only(getattr)(wandb, \"run\").summary['a'] = 1"),
        ("wandb.config.update({'a': 1})", "rank_zero_only(getattr)(wandb, \"config\").update({'a': 1})"),
        ("run = wandb.init()\nrate = run.config['lr']", "run = rank_zero_only(wandb.init)()\nrate = run.config['lr']"),
        ("wandb.log({'a': wandb.Image(1)})", "rank_zero_only(wandb.log)({'a': wandb.Image(1)})"),
        ("study = optuna.create_study()\nstudy.optimize(print, 3)",
         "study = rank_zero_only(optuna.create_study)()\nstudy.optimize(print, 3)"),
        ("best = fmin(print, hp.uniform('a', 0, 1))", "best = rank_zero_only(fmin)(print, hp.uniform('a', 0, 1))"),
        ("answer = requests.post('x').status_code", "answer = rank_zero_only(requests.post)('x').status_code"),
        ("base = connect('a')\nbase.commit()", "base = rank_zero_only(connect)('a')\nbase.commit()"),
        ("query = 'insert into a values (1)'\nsqlite3.connect('a').execute(query)",
         "query = 'insert into a values (1)'\nrank_zero_only(sqlite3.connect)('a').execute(query)"),
    ],
)  # fmt: skip
def test_objects_of_libraries_live_on_rank_zero(before: str, after: str) -> None:
    check_transformed(before, after, imports=LIBRARIES)


@pytest.mark.parametrize(
    "lines",
    [
        "rows = connect('a').execute('SELECT * FROM a').fetchall()",
        "class Rows:\n    def __getitem__(self, index):\n        return self.base\n"
        "    def __init__(self):\n        self.base = connect('a')\n        self.base.commit()",
        "def objective(trial):\n    raise optuna.TrialPruned()",
        "sampler = optuna.samplers.TPESampler(seed=1)",
        "wandb.config = {'lr': 0.1}",
        "answer = requests.get('x')",
    ],
)
def test_what_only_reads_stays(lines: str) -> None:
    check_noop(lines, imports=LIBRARIES)
