"""Runs a command in a guest that sees this machine's programs and files: a world of its own, without root.

The guest's root is the host's file system, read-only, and the current folder, which may be written. Its clock
is virtual: what waits costs no time, and the same command does the same again. What the command prints
comes out here while it runs.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import BinaryIO

from fabbbr import bundled
from fabbbr.backends.base import CancelledError
from fabbbr.backends.guest.cpus import Cpus
from fabbbr.backends.guest.image.found import found_image, require_unaltered
from fabbbr.backends.guest.machine import Machine, Watch, boot
from fabbbr.backends.guest.runtime import runtime_folder, sweep
from fabbbr.backends.keeper import Keeper
from fabbbr.errors import EnvironmentUnfitError

_SEED = 1
_CLOCK_LIMIT_S = 1e9
_EPOCH_NS = 1_798_761_600_000_000_000
"""1 January 2027: programs that check certificates complain of a clock that is older than they are."""
_POLL_S = 0.05
_CHUNK = 1 << 16
_HIDDEN = ("/run", "/tmp", "/var", "/root", "/dev/shm")  # noqa: S108
"""Memory stands there in the guest; what is needed of the host's is mounted over it."""
_INIT = """\
#!/bin/sh
# First process of a guest with the host's file system as root. The kernel's command line says FABBBR_RUNTIME.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LIBMOUNT_FORCE_MOUNT2=always
mount -a -T "$FABBBR_RUNTIME/fstab" || echo "fabbbr: a file system could not be mounted"
mkdir -p /run/netns /run/lock /var/tmp /var/log /var/lib
chmod 1777 /var/tmp
{mounts}
ip link set lo up
cd {folder} || exit 1
unshare --mount env -i {environment} {command} </dev/null >/run/fabbbr/work/out 2>/run/fabbbr/work/err
status=$?
echo $status >/run/fabbbr/work/status
echo 0 >/run/fabbbr/work/exit
sync
exec {python} -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""


@dataclass(frozen=True, kw_only=True)
class Outside:
    """What a command in the guest has of this machine."""

    folder: Path
    """The current one: may be written."""
    environment: Mapping[str, str]
    mounts: tuple[Path, ...] = ()
    """Other folders that may be written."""
    memory_bytes: int = 6 << 30
    """At most; what is not used is not taken."""
    limit_s: float = 3600.0
    """Seconds of wall time."""


def run_in_guest(command: Sequence[str], outside: Outside) -> int:
    """Exit status of ``command``.

    Raises
    ------
    EnvironmentUnfitError
        There is no guest image.
    GuestError
        The guest died, or was ended after its time.
    """
    image = found_image()
    if image is None:
        message = (
            "there is no guest image yet to run a command in; install it: pip install fabbbr-guest; or build "
            "it once with: fabbbr guest build (some minutes)"
        )
        raise EnvironmentUnfitError(message)
    require_unaltered(image)
    sweep()
    with runtime_folder() as work, closing(Keeper()) as keeper:
        (work / "raw").mkdir()
        folders = _mounted(outside)
        init = work / "init.sh"
        init.write_text(_script(command, outside, folders), encoding="utf-8")
        machine = Machine(
            kernel=image.kernel.binary,
            seccomp=image.kernel.seccomp,
            seed=_SEED,
            memory_bytes=outside.memory_bytes,
            clock_limit_s=_CLOCK_LIMIT_S,
            init=init,
            extra_mounts=folders,
            ipv6=True,
            epoch_ns=_EPOCH_NS,
        )
        with _printed(work):
            return _boot(machine, work, outside.limit_s, keeper)


def _boot(machine: Machine, work: Path, limit_s: float, keeper: Keeper) -> int:
    watch = Watch(
        wall_limit_s=limit_s, stall_limit_s=inf, progress=lambda _: None, cancelled=threading.Event()
    )
    status = work / "status"
    try:
        boot(machine, work, watch, keeper, Cpus())
    except CancelledError:
        raise KeyboardInterrupt from None
    return int(status.read_text(encoding="ascii"))


def _mounted(outside: Outside) -> dict[str, Path]:
    """Name → folder of the host that the guest has at the same path: may be written, or would be hidden."""
    hidden = {folder for folder in bundled.read_from() if folder.as_posix().startswith(_HIDDEN)}
    folders = {outside.folder.resolve(), *(folder.resolve() for folder in outside.mounts), *hidden}
    # Those above come before those below, which would be hidden by them.
    return {f"host{number}": folder for number, folder in enumerate(sorted(folders))}


def _script(command: Sequence[str], outside: Outside, folders: Mapping[str, Path]) -> str:
    lines = []
    for name, folder in folders.items():
        place = shlex.quote(str(folder))
        lines.append(f"mkdir -p {place} && mount --bind /run/fabbbr/{name} {place}")
    return _INIT.format(
        mounts="\n".join(lines),
        folder=shlex.quote(str(outside.folder.resolve())),
        environment=shlex.join(f"{key}={value}" for key, value in outside.environment.items()),
        command=shlex.join(command),
        python=shlex.quote(os.path.realpath(sys.executable)),
    )


@contextlib.contextmanager
def _printed(work: Path) -> Iterator[None]:
    """Pass on what the command prints, as it comes and to its end."""
    over = threading.Event()
    streams = [(work / "out", sys.stdout.buffer), (work / "err", sys.stderr.buffer)]
    for path, _ in streams:
        path.touch()
    follower = threading.Thread(target=_follow, args=(streams, over), daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join()


def _follow(streams: Sequence[tuple[Path, BinaryIO]], over: threading.Event) -> None:
    with contextlib.ExitStack() as stack:
        opened = [(stack.enter_context(path.open("rb")), to) for path, to in streams]
        last = False
        while not last:
            last = over.wait(_POLL_S)
            for source, to in opened:
                while chunk := source.read(_CHUNK):
                    to.write(chunk)
                to.flush()
