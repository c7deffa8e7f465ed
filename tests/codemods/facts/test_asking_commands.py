"""Commands that are asked for what they print."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.asking_commands import only_asks

from tests.codemods.checks import script_of
from tests.codemods.plain.test_followed import plain, refusals, training


def asks(call: str) -> bool:
    script = script_of(f"import subprocess\nfrom subprocess import PIPE, Popen\n{call}")
    return only_asks(script, script.tree.body[-1].value)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "call",
    [
        "subprocess.run(['git', 'rev-parse', 'HEAD'], capture_output=True, text=True)",
        "subprocess.run(('git', 'describe', '--always'), stdout=subprocess.PIPE, check=True)",
        "subprocess.run('git log -n 1', shell=True, capture_output=True)",
        "Popen(['git', '-C', root, 'rev-parse', '--short', 'HEAD'], stdout=PIPE, cwd=root)",
    ],
)
def test_git_is_asked_for_its_history(call: str) -> None:
    assert asks(call)


@pytest.mark.parametrize(
    "call",
    [
        "subprocess.run(['git', 'rev-parse', 'HEAD'])",
        "subprocess.run(['git', 'rev-parse', 'HEAD'], stdout=file)",
        "subprocess.run(['git', 'rev-parse', 'HEAD'], capture_output=quiet)",
        "subprocess.run(['git', 'rev-parse', 'HEAD'], **options)",
        "subprocess.run(['git', 'pull'], capture_output=True)",
        "subprocess.run(['git', 'log', '--output=a'], capture_output=True)",
        "subprocess.run(['git', 'log', option], capture_output=True)",
        "subprocess.run(['git', verb], capture_output=True)",
        "subprocess.run(['git', '-C', root], capture_output=True)",
        "subprocess.run('git log > a', shell=True, capture_output=True)",
        "subprocess.run('git log; rm a', shell=True, capture_output=True)",
        "subprocess.run(['nvidia-smi'], capture_output=True)",  # each rank would choose by what it finds
        "subprocess.run(['./prepare.sh', 'git', 'log'], capture_output=True)",
        "subprocess.run(command, capture_output=True)",
        'subprocess.run("git log \'", shell=True, capture_output=True)',
        "subprocess.run(capture_output=True)",
        "subprocess.check_call(['git', 'log'], stdout=subprocess.PIPE)",
    ],
)
def test_another_command(call: str) -> None:
    assert not asks(call)


def test_every_rank_asks() -> None:
    asked = "name = subprocess.run(['git', 'rev-parse', 'HEAD'], capture_output=True).stdout"
    result = plain(f"import subprocess\n{training(after=asked)}")
    assert not refusals(result) and f"\n{asked}\n" in result.code
    [refused] = refusals(plain(f"import subprocess\n{training(after=asked.replace('rev-parse', 'pull'))}"))
    assert "subprocess.run gives back is used" in refused
