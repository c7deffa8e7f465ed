from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed, findings

IMPORTS = "import datetime as dt, os, tempfile, time, uuid\nfrom datetime import datetime\n"


@pytest.mark.parametrize(
    "lines",
    [
        "start = time.time()\nelapsed = time.time() - start",
        'print("now", datetime.now())',
        'print(f"{time.time():.1f}")',
        "began = datetime.now()",
        "start = time.time()\ntext = str(time.time() - start)",
        "start = time.time()\ntext = f'{time.time() - start:.1f} s'",
        "seconds = round(time.time())",
        "text = f'{time.ctime()}: begin'\nprint(text)",
    ],
)
def test_times_that_are_measured_or_shown_stay(lines: str) -> None:
    check_noop(lines, imports=IMPORTS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("run = time.strftime('%H')", "run = rank_zero_value(time.strftime)('%H')"),
        ("run = datetime.now().strftime('%H')", "run = rank_zero_value(datetime.now)().strftime('%H')"),
        ("run = dt.datetime.now().isoformat()", "run = rank_zero_value(dt.datetime.now)().isoformat()"),
        ("now = datetime.now()\nrun = now.strftime('%H')",
         "now = rank_zero_value(datetime.now)()\nrun = now.strftime('%H')"),
        ('run = f"runs/{datetime.now():%H}"', 'run = f"runs/{rank_zero_value(datetime.now)():%H}"'),
        ("run = 'runs/' + str(int(time.time()))", "run = 'runs/' + str(int(rank_zero_value(time.time)()))"),
        ("run = os.path.join('runs', time.ctime())", "run = os.path.join('runs', rank_zero_value(time.ctime)())"),
        ("os.mkdir(f'run{os.getpid()}')", "rank_zero_only(os.mkdir)(f'run{rank_zero_value(os.getpid)()}')"),
        ("run = uuid.uuid4().hex", "run = rank_zero_value(uuid.uuid4)().hex"),
        ("folder = tempfile.mkdtemp()", "folder = rank_zero_value(tempfile.mkdtemp)()"),
    ],
)  # fmt: skip
def test_names_are_those_of_rank_zero(before: str, after: str) -> None:
    check_transformed(before, after, imports=IMPORTS)


def test_a_long_f_string_is_converted_or_reported() -> None:
    lines = 'run = f"""runs\n{datetime.now()}"""'
    changed = 'run = f"""runs\n{rank_zero_value(datetime.now)()}"""'
    try:
        check_transformed(lines, changed, imports=IMPORTS)
    except AssertionError:
        assert [each.rule for each in findings(lines, imports=IMPORTS)] == ["DDP114"]
