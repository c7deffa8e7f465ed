"""Two hosts on this machine: network namespaces with a cable between them, each with a name that both know."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Options, the host, and words that its shell would read: as ssh takes them.
_RSH = """\
#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
exec nsenter --net=/run/netns/$host unshare --uts --mount sh -c \\
    'hostname $0; mount --bind {known} /etc/hosts; exec sh -c "$*"' $host "$@"
"""


@dataclass(frozen=True)
class Host:
    """A machine of its own as far as names and addresses go; files and processes are those of this one.

    known: a file with the addresses of both hosts, which is /etc/hosts there.
    """

    name: str
    known: Path

    def command(self, words: Sequence[str]) -> list[str]:
        """The command line that runs a command there."""
        enter = ["nsenter", f"--net=/run/netns/{self.name}", "unshare", "--uts", "--mount", "sh", "-c"]
        return [*enter, 'hostname $0; mount --bind $1 /etc/hosts; shift; exec "$@"', self.name, str(self.known), *words]


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts that are there until the block ends.

    Args:
        folder: for their files. `rsh`, which starts a command on another host as mpirun asks for, is made there.
    """
    names = [f"d{os.getpid()}n{number}" for number in (1, 2)]
    known = folder / "hosts"
    known.write_text("127.0.0.1 localhost\n" + "".join(f"10.77.4.{n} {name}\n" for n, name in enumerate(names, 1)))
    first, second = (Host(name, known) for name in names)
    rsh = folder / "rsh"
    rsh.write_text(_RSH.format(known=known))
    rsh.chmod(0o755)
    try:
        for name in names:
            _ip("netns", "add", name)
            # As docker makes it: an address of the machine's own, by which no other can reach it.
            _ip("-n", name, "link", "add", "bridge", "type", "bridge")
            _ip("-n", name, "addr", "add", "172.17.0.1/16", "dev", "bridge")
            _ip("-n", name, "link", "set", "bridge", "up")
        _ip("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable", "netns", names[1])
        for number, name in enumerate(names, 1):
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "addr", "add", f"10.77.4.{number}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
        yield first, second
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=60)
