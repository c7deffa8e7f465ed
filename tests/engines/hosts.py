"""Two hosts on this machine: network namespaces with a cable between them, each with a name that both know."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[str, str]]:
    """The names of two hosts that are there until the block ends; `on` runs a command on one.

    Args:
        folder: for their files. `rsh`, which starts a command on another host as mpirun asks for, is made there.
    """
    names = (f"d{os.getpid()}n1", f"d{os.getpid()}n2")
    known = "127.0.0.1 localhost\n" + "".join(f"10.77.4.{number} {name}\n" for number, name in enumerate(names, 1))
    places = [Path("/etc/netns") / name for name in names]
    try:
        for name, place in zip(names, places, strict=True):
            _ip("netns", "add", name)
            place.mkdir(parents=True)
            (place / "hosts").write_text(known)
        first, second = names
        _ip("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)
        for number, name in enumerate(names, 1):
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "addr", "add", f"10.77.4.{number}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
        rsh = folder / "rsh"
        rsh.write_text(
            "#!/bin/sh\n"
            'while [ "${1#-}" != "$1" ]; do shift; done\n'
            "host=$1; shift\n"
            'exec ip netns exec $host unshare --uts sh -c \'hostname $0; exec sh -c "$*"\' $host "$@"\n'
        )
        rsh.chmod(0o755)
        yield names
    finally:
        for name, place in zip(names, places, strict=True):
            subprocess.run(["ip", "netns", "delete", name], check=False)
            (place / "hosts").unlink(missing_ok=True)
            place.rmdir()


def on(host: str, command: Sequence[str]) -> list[str]:
    """The command line that runs a command on a host, which knows its own name."""
    return ["ip", "netns", "exec", host, "unshare", "--uts", "sh", "-c", 'hostname $0; exec "$@"', host, *command]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=60)
