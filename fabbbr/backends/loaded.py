"""What a run has put into the kernel of a machine: where that is noted, and how a machine is asked.

Beside each file stands a record in the words of :mod:`fabbbr.agent.loading`, which finds it there. A run that
was killed leaves records; the next one takes away what they name.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from fabbbr.backends.channel import Channel
from fabbbr.errors import EnvironmentUnfitError, ModuleUnfitError

RECORDS = "/run/fab_loaded"
"""Where the agent keeps what it has loaded: :data:`fabbbr.agent.loading._LOADED`."""
OFFERED = "/proc/sys/net/ipv4/tcp_available_congestion_control"
"""The congestion controls that a kernel has."""
LIMIT_S = 120.0
_LEFT = f'for file in {RECORDS}/*.$1; do [ ! -e "$file" ] || {{ cat "$file"; echo; }}; done'


def run(
    channel: Channel, script: str, *words: str, stdin: bytes = b"", timeout_s: float = LIMIT_S
) -> subprocess.CompletedProcess[bytes]:
    """A script of the shell there, whatever its exit status; raise ChannelError when that cannot be."""
    return channel.run(("sh", "-c", script, "sh", *words), stdin=stdin, timeout_s=timeout_s)


def records(channel: Channel, suffix: str) -> list[dict[str, Any]]:
    """What stands there in files of this suffix; what is no record is left out."""
    found = []
    for line in run(channel, _LEFT, suffix).stdout.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def belongs_to_another(runner: int) -> bool:
    """Whether a run that still goes on has put it there."""
    return runner != os.getpid() and Path(f"/proc/{runner}").exists()


def ground(channel: Channel, script: str, lacks: Mapping[int, str], what: str, otherwise: str = "") -> bytes:
    """What a script says of a machine that is to run ``what``; raise EnvironmentUnfitError where it cannot.

    ``lacks`` is its exit status → what the machine lacks, with the remedy; ``otherwise`` is another remedy.
    """
    answer = run(channel, script)
    if answer.returncode != 0:
        said = answer.stderr.decode("utf-8", "replace").strip()
        why = lacks.get(answer.returncode, f"cannot say what it has: {said}; look there")
        message = f"{what}: the machine {why}{otherwise}"
        raise EnvironmentUnfitError(message)
    return answer.stdout


def require_free(names: Iterable[str], offered: Collection[str], place: Path, where: str) -> None:
    """Raise ModuleUnfitError for a name that the kernel there has already."""
    taken = next((name for name in names if name in offered), None)
    if taken is not None:
        message = (
            f"{place}: {where} offers a congestion control {taken!r} already, and takes no second; give "
            ".name another"
        )
        raise ModuleUnfitError(message)
