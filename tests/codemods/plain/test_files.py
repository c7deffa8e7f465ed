"""Files in the plain style: rank 0 writes them, and the others wait only where they may read them (DDP607)."""

from pathlib import Path

import pytest
from ddpify_codemods import ONE_DEVICE, convert

from tests.codemods.plain.test_followed import plain, refusals, training

TRAINED = """\
import os
import torch
from torch.utils.data import DataLoader, TensorDataset

def resume(model, path):
    if os.path.isfile(path):
        model.load_state_dict(torch.load(path, weights_only=True))

def save(model, folder):
    if not os.path.exists(folder):
        os.makedirs(folder)
    torch.save(model.state_dict(), folder + "/model.pt")
    torch.save(3, folder + "/epoch.pt")

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for epoch in range(2):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save(model, "out")
    {each}
{after}
"""
GUARDED = """\
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), folder + "/model.pt")
        torch.save(3, folder + "/epoch.pt")
"""
RESUME = 'resume(model, "out/model.pt")'


def _saves(before: str = "", each: str = "", after: str = "") -> str:
    """The function that saves, converted, up to the code below it."""
    path = Path("train.py")
    result = convert({path: TRAINED.format(before=before, each=each, after=after)}, "cpu", style="plain")[path]
    assert not [finding for finding in result.findings if finding.severity == "refused"]
    return result.code[result.code.index("def save") : result.code.index("torch.manual_seed(0)")]


def test_what_is_written_one_after_the_other_has_one_guard() -> None:
    assert GUARDED in _saves()


def test_nobody_waits_for_a_file_that_was_read_before_it_is_written() -> None:
    assert "barrier" not in _saves(before=RESUME)


def test_the_ranks_wait_once_for_files_that_are_read_later() -> None:
    assert _saves(after=RESUME).endswith(GUARDED + "    dist.barrier()\n\n")


IMPORTS = "from PIL import Image\nimport imageio\nimport pandas\nfrom safetensors.torch import load_file\n"


@pytest.mark.parametrize("read", ["load_file('out/a.pt')", "open('out/model.pt', 'rb')", "load_anything(sys.argv[1])"])
def test_a_library_that_reads_is_waited_for(read: str) -> None:
    code = _saves(after=f"import sys\n{IMPORTS}from others import load_anything\nprint({read})")
    assert code.endswith(GUARDED + "    dist.barrier()\n\n")


@pytest.mark.parametrize(
    "read", ["Image.open('out/a.png')", "imageio.imread(sys.argv[1])", "pandas.read_csv('out/a.csv')", "open('a.txt')"]
)
def test_nobody_waits_for_a_file_of_another_kind(read: str) -> None:
    assert "barrier" not in _saves(after=f"import sys\n{IMPORTS}print({read})")


def test_nobody_waits_for_what_no_call_reads() -> None:
    assert "barrier" not in _saves(after="def forgotten(path):\n    return torch.load(path)\n")


def test_a_loop_comes_back_to_what_reads() -> None:
    assert _saves(each=RESUME).endswith(GUARDED + "    dist.barrier()\n\n")


def test_a_reader_that_no_call_is_seen_of_may_come_later() -> None:
    assert "barrier" in _saves(after="import atexit\natexit.register(resume, model, 'out/model.pt')")


def test_the_ranks_decide_together_whether_a_file_is_written() -> None:
    """A slower rank would find the file that rank 0 has begun, and pass by the barrier."""
    written = 'if not os.path.exists("a.pt"):\n    torch.save(3, "a.pt")\nprint(torch.load("a.pt"))'
    path = Path("train.py")
    code = convert({path: TRAINED.format(before=written, each="", after="")}, "cpu", style="plain")[path].code
    assert 'if not from_rank_0(os.path.exists("a.pt")):\n    if dist.get_rank() == 0:\n        torch.save(' in code
    assert "    if os.path.isfile(path):" in code and "    if not os.path.exists(folder):" in code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "(FOLDER / 'a').open('wb').write(b'a')",
            "((FOLDER / 'a') if dist.get_rank() == 0 else Path(os.devnull)).open('wb').write(b'a')\n",
        ),
        (
            "with (FOLDER / 'a').open('w') as file:\n    file.write('a')",
            "with ((FOLDER / 'a') if dist.get_rank() == 0 else Path(os.devnull)).open('w') as file:\n",
        ),
        (
            "with open('log.txt', 'a+') as file:\n    file.write('a')\n    print('b', file=file)",
            "with open('log.txt' if dist.get_rank() == 0 else os.devnull, 'a+') as file:\n",
        ),
        (
            "file = open('log.txt', 'w+')\nfile.write('a')\nprint('b', file=file, flush=True)",
            "file = open('log.txt' if dist.get_rank() == 0 else os.devnull, 'w+')\n",
        ),
        (
            "import csv\nwith open('log.csv', 'a+') as file:\n    csv.writer(file).writerow([1])",
            "with open('log.csv' if dist.get_rank() == 0 else os.devnull, 'a+') as file:\n",
        ),
        (
            "def logs():\n    file = open('log.txt', 'a+')\nlogs()",
            "    file = open('log.txt' if dist.get_rank() == 0 else os.devnull, 'a+')\n",
        ),
    ],
)
def test_the_others_write_to_the_null_device(before: str, after: str) -> None:
    path = Path("train.py")
    script = TRAINED.format(before=f"from pathlib import Path\nFOLDER = Path('out')\n{before}", each="", after="")
    result = convert({path: script}, "cpu", style="plain")[path]
    assert after in result.code and not [each for each in result.findings if each.severity == "refused"]


@pytest.mark.parametrize(
    "line",
    [
        "with open('log.txt', 'a+') as file:\n    print(file.read())",
        "file = open('log.txt', 'w+')\nfile.write('a')\nprint(file.read())",
        "file = open('log.txt', 'w+')\nfile.write('a')\nprint(*map(str, file))",
        "import csv\nwith open('log.csv', 'a+') as file:\n    print(*csv.reader(file))",
        "file = open('log.txt', 'a+')",
        "def logs():\n    global file\n    file = open('log.txt', 'a+')\nlogs()",
        "file = open('log.txt', 'w+')\nother = file\nprint(other.read())",
        "with Path('log.txt').open('r+') as file:\n    print(file.read())",
        "with Path('log.txt').open('x') as file:\n    file.write('a')",
    ],
)
def test_what_is_read_and_written_at_once_is_refused(line: str) -> None:
    path = Path("train.py")
    script = TRAINED.format(before=f"from pathlib import Path\n{line}", each="", after="")
    result = convert({path: script}, "cpu", style="plain")[path]
    assert [each for each in result.findings if each.severity == "refused"]


@pytest.mark.parametrize("said", ["", ", exist_ok=False", ", exist_ok=True"])
def test_a_folder_may_be_there_since_every_rank_makes_it(said: str) -> None:
    path = Path("train.py")
    source = TRAINED.format(before=f'os.makedirs("runs"{said})', each="", after="")
    code = convert({path: source}, "cpu", style="plain")[path].code
    assert 'os.makedirs("runs", exist_ok=True)' in code


@pytest.mark.parametrize(
    ("handler", "right"),
    [
        ("FileExistsError:\n    n = 1\n    os.makedirs('run1')", False),
        ("OSError:\n    print('remove it')\n    exit(1)", False),
        ("FileExistsError:\n    pass", True),
        ("OSError:\n    if not os.path.isdir('run0'):\n        raise", True),
        ("KeyError:\n    n = 1", True),
    ],
)
def test_what_is_done_where_a_folder_is_there_already(handler: str, right: bool) -> None:
    path = Path("train.py")
    source = TRAINED.format(before=f"try:\n    os.makedirs('run0')\nexcept {handler}", each="", after="")
    result = convert({path: source}, "cpu", style="plain")[path]
    assert any(finding.severity == "refused" for finding in result.findings) is not right


@pytest.mark.parametrize(
    ("look", "right"),
    [("os.path.exists('run0')", True), ("Path('run0').is_dir()", False), ("os.path.exists('b')", False)],
)
def test_a_folder_that_was_looked_for_is_not_there_already(look: str, right: bool) -> None:
    path = Path("train.py")
    made = f"try:\n    if not {look}:\n        os.makedirs('run0')\nexcept OSError as e:\n    print(e)\n    exit(1)"
    result = convert({path: TRAINED.format(before=made, each="", after="")}, "cpu", style="plain")[path]
    assert any(finding.severity == "refused" for finding in result.findings) is not right


def test_a_bar_of_progress_is_drawn_by_rank_0() -> None:
    head = "from progress.bar import Bar\nfrom progress.spinner import Spinner\n"
    use = "bar.suffix = f'{total:.2f}'\nbar.next()\nbar.finish()\n"
    made = "bar = Bar('Training', max=3)\nspin = Spinner(file=None)\n"
    code = plain(head + training(after=made + use)).code
    assert "bar = Bar('Training', max=3, file=sys.stderr if dist.get_rank() == 0 else None)\n" in code
    assert f"spin = Spinner(file=None)\n{use}" in code
    path = Path("train.py")
    assert "bar = Bar('Training', max=3)\n" in convert({path: code}, ONE_DEVICE)[path].code


EARLY = (
    "import logging\nlogging.basicConfig(filename='training.log')\n\n\ndef save():\n    open('a.txt', 'w').close()\n"
)


@pytest.mark.parametrize(
    ("head", "behind", "own", "early"),
    [
        ("import logs\n", "", EARLY, True),
        ("from logs import save\n", "", EARLY, True),
        ("import logs\n", "", EARLY.replace("logging.basicConfig(", "def log():\n    logging.basicConfig("), False),
        ("", "def late():\n    import logs\n\n\n", EARLY, False),
        ("", "import logs\n", EARLY, False),  # below what joins the group
    ],
)
def test_the_group_is_joined_above_the_import_of_what_writes(head: str, behind: str, own: str, early: bool) -> None:
    """No rank is known before the process group is joined."""
    path, other = Path("train.py"), Path("logs.py")
    source = training()
    body = source[source.index("train_set") :]
    main = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"{head}{source[: source.index('train_set')]}{behind}\n\nif __name__ == '__main__':\n{main}"
    found = convert({path: source, other: own}, "cpu", style="plain")
    assert not refusals(found[path]) and not refusals(found[other])
    code = found[path].code
    assert (code.index("dist.init_process_group") < code.index("logs")) is early or not head


def test_a_folder_that_is_made_while_a_file_is_imported_is_no_matter_of_ranks() -> None:
    path, other = Path("train.py"), Path("logs.py")
    found = convert(
        {path: f"import logs\n{training()}", other: "import os\nos.makedirs('out')\n"}, "cpu", style="plain"
    )
    assert not refusals(found[other]) and "exist_ok=True" in found[other].code


SAVES = "torch.save(model.state_dict(), 'out/a.pt')"
LOADS = "torch.load('out/a.pt')"


@pytest.mark.parametrize("then", ["pass", "print('failed')", "raise"])
def test_the_ranks_wait_behind_what_rank_0_alone_may_leave(then: str) -> None:
    code = _converted(f"try:\n    {SAVES}\nexcept OSError:\n    {then}\n{LOADS}\n")
    assert f"except OSError:\n    {then}\ndist.barrier()\n{LOADS}" in code


@pytest.mark.parametrize(
    "after",
    [
        f"try:\n    {SAVES}\n    {LOADS}\nexcept OSError:\n    pass\n",
        f"for attempt in range(3):\n    try:\n        {SAVES}\n        break\n    except OSError:\n        pass\n"
        f"{LOADS}\n",
        f"def keep():\n    try:\n        {SAVES}\n        return True\n    except OSError:\n        return False\n"
        f"keep()\n{LOADS}\n",
    ],
)
def test_they_wait_at_once_where_something_reads_or_leaves_there(after: str) -> None:
    lines = [line.strip() for line in _converted(after).split("\n")]
    assert lines[lines.index(SAVES) + 1] == "dist.barrier()"


def test_folders_that_are_made_anew_wait_for_their_end() -> None:
    code = _converted("import shutil\nshutil.rmtree('out')\nos.makedirs('out')\n")
    assert "    shutil.rmtree('out')\ndist.barrier()\nos.makedirs('out', exist_ok=True)" in code


def _converted(after: str) -> str:
    result = plain(TRAINED.format(before="", each="", after=after))
    assert not refusals(result)
    return result.code


NOBODY = "with mlflow.start_run({}) if dist.get_rank() == 0 else contextlib.nullcontext(){}:\n"


@pytest.mark.parametrize(
    ("given", "name", "body"),
    [
        ("", "", "mlflow.log_metric('total', total)"),
        ("run_name=f'lr {0.1}'", "", "print(total)"),
        ("", " as run", "mlflow.set_tag('id', run.info.run_id)"),
    ],
)
def test_a_run_that_with_begins(given: str, name: str, body: str) -> None:
    source = "import mlflow\n" + training(after=f"with mlflow.start_run({given}){name}:\n    {body}\n")
    result = plain(source)
    assert not refusals(result) and NOBODY.format(given, name) in result.code and "import contextlib\n" in result.code


@pytest.mark.parametrize(
    "after",
    [
        "with mlflow.start_run() as run:\n    print(run.info.run_id)\n",
        "with mlflow.start_run() as run:\n    if run:\n        print(1)\n",
        "with mlflow.start_run() as run:\n    def known(): return run.info\n    print(known())\n",
        "with mlflow.start_run() as model.run:\n    print(1)\n",
        "def begin():\n    global run\n    with mlflow.start_run() as run:\n        print(1)\nbegin()\n",
        "with mlflow.start_run(run_name=str(torch.rand(1))):\n    print(1)\n",  # the others draw it, too
        "with mlflow.start_run(run_name=(name := 'a')):\n    print(name)\n",
        "run = mlflow.start_run()\nwith run:\n    print(1)\n",
        "with mlflow.start_run():\n    mlflow.set_tag('id', mlflow.active_run().info.run_id)\n",
        "with mlflow.start_run():\n    mlflow.set_tag('to', mlflow.get_artifact_uri())\n",
        "from mlflow import last_active_run\nwith mlflow.start_run():\n    print(1)\n"
        "mlflow.set_tag('id', last_active_run().info.run_id)\n",
        "import sqlite3\nwith sqlite3.connect('a') as data:\n    data.execute('insert into a')\n",
    ],
)
def test_a_run_that_all_ranks_ask_for(after: str) -> None:
    assert refusals(plain("import mlflow\n" + training(after=after)))


def test_a_number_that_a_run_is_given_is_brought_together_before() -> None:
    begins = "with mlflow.start_run(run_name=f'{loss.item()}'):\n    print(1)\n"
    result = plain("import mlflow\n" + training(after=begins))
    assert not refusals(result) and "\nloss = mean_over_ranks(loss)\nwith mlflow" in result.code
    inside = "optimizer.step()\n        " + begins.replace("\n    print", "\n            print")
    assert refusals(plain("import mlflow\n" + training(step=inside)))


@pytest.mark.parametrize(
    ("then", "handler"),
    [
        ("print('Created')", "pass"),
        ("print('Created')", "print('there')"),
        ("logging.info('Created')", "pass"),
        ("shutil.copy('a', 'runs')", "pass"),
        ("log.info('Created')", "pass"),
    ],
)
def test_what_follows_a_new_folder_is_for_a_new_one(then: str, handler: str) -> None:
    """With exist_ok=True, the text came in each epoch."""
    text = f"    try:\n        os.makedirs('runs')\n        {then}\n    except OSError:\n        {handler}\n"
    result = plain("import os\nimport shutil\nimport logging\nlog = logging.getLogger()\n" + training(after=text))
    assert not refusals(result) and "exist_ok" not in result.code
    assert "        if dist.get_rank() == 0:\n            os.makedirs('runs')\n" in result.code
    assert f"        {handler}\n    dist.barrier()\n" in result.code


def test_what_all_ranks_do_behind_a_new_folder_is_refused() -> None:
    text = "    try:\n        os.makedirs('runs')\n        first = epoch\n    except OSError:\n        pass\n"
    assert refusals(plain("import os\n" + training(after=text)))
    several = text.replace("first = epoch", "os.makedirs('logs')")
    result = plain("import os\n" + training(after=several))
    assert not refusals(result) and result.code.count("exist_ok=True") == 2


@pytest.mark.parametrize(
    ("then", "handler"),
    [
        ("print('Created')", "found.append(epoch)"),
        ("print('Created')", "optimizer.param_groups[0].update(lr=0.001)"),
        ("print('Created')", "quit()"),
        ("print('Created')", "shutil.rmtree('runs')"),
        ("print('Created')", "os._exit(0)"),
        ("print('Created')", "print(loss.item())"),
        ("print('Created', found.pop())", "pass"),
    ],
)
def test_more_than_to_say_that_a_folder_is_there_is_refused(then: str, handler: str) -> None:
    text = f"    try:\n        os.makedirs('runs')\n        {then}\n    except OSError:\n        {handler}\n"
    assert refusals(plain("import os\nimport shutil\nfound = []\n" + training(after=text)))


@pytest.mark.parametrize("body", ["path = 'runs'\n        os.makedirs(path)", "os.makedirs('runs')\n        pass"])
def test_nothing_for_a_new_folder_behind_it_lets_all_ranks_make_it(body: str) -> None:
    text = f"    try:\n        {body}\n    except OSError:\n        pass\n"
    result = plain("import os\n" + training(after=text))
    assert not refusals(result) and "exist_ok=True" in result.code


@pytest.mark.parametrize("given", ["make", "lambda: make()"])
def test_ranks_do_not_wait_for_a_folder_in_a_function_that_is_handed_on(given: str) -> None:
    """At the end of a run there is no group."""
    made = "import atexit\nimport os\ndef make():\n    try:\n        os.makedirs('runs')\n        print('Created')\n"
    made += f"    except OSError:\n        pass\natexit.register({given})\n"
    result = plain(made + training())
    assert not refusals(result) and "exist_ok=True" in result.code and "dist.barrier()" not in result.code


def test_a_data_set_that_is_split_into_folders_is_split_once() -> None:
    splits = 'import splitfolders\nif not os.path.exists("out"):\n    splitfolders.ratio("data", output="out")\n'
    reads = 'print(len(os.listdir("out")))\n'
    code = plain(TRAINED.format(before=splits + reads, each="", after="")).code
    once = '    if dist.get_rank() == 0:\n        splitfolders.ratio("data", output="out")\n    dist.barrier()\n'
    assert 'if not from_rank_0(os.path.exists("out")):\n' + once in code


@pytest.mark.parametrize(
    "writes", ['json.dump(history, open("h.json", "w"))', 'open("h.json", "w").write(json.dumps(history))']
)
def test_a_file_that_nobody_keeps_is_complete_behind_the_statement(writes: str) -> None:
    kept = f"import json\nhistory = [1, 2]\n{writes}\n"
    code = plain(TRAINED.format(before="", each="", after=kept + 'print(json.load(open("h.json")))')).code
    assert 'dist.barrier()\nprint(json.load(open("h.json")))\n' in code
    assert "dist.barrier()" not in plain(TRAINED.format(before="", each="", after=kept)).code
