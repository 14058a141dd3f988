"""First process of the guest: of the host it sees the folders that FABBBR_MOUNTS names, and no more.

The kernel's command line is its environment. A host folder is found from where the kernel was started.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_POWER_OFF = 0x4321FEDC
_BASE = "/run/fabbbr"
_FILE_SYSTEMS = (
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("tmpfs", "/dev/shm", ""),
    ("tmpfs", "/run", "mode=755"),
    ("tmpfs", "/tmp", "mode=1777"),
)
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Mount, run the agent, leave its exit status in the folder of the work, and power off."""
    for kind, place, options in _FILE_SYSTEMS:
        _mount(kind, place, options)
    for name in os.environ["FABBBR_MOUNTS"].split(","):
        _mount("hostfs", f"{_BASE}/{name}", f"/proc/self/cwd/{name}")
    # At boot the kernel speaks of its host, and is told to be silent; from here on of the guest.
    Path("/proc/sys/kernel/printk").write_text("4", encoding="ascii")
    # Whoever is woken first runs first. A fair scheduler asks who has run how much: it remembers the set-up.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    Path("/run/netns").mkdir()
    # A clock that reads zero is taken for one that was never set: netem then leaves out its slots.
    time.sleep(2)
    os.chdir(_BASE)
    _raise_tcp_memory()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    status = _agent(int(os.environ["FABBBR_LIMIT"]))
    Path("work/exit").write_text(f"{status}\n", encoding="ascii")
    os.sync()
    _libc.reboot(_POWER_OFF)


def _mount(kind: str, place: str, options: str) -> None:
    Path(place).mkdir(parents=True, exist_ok=True)
    if _libc.mount(b"none", place.encode(), kind.encode(), 0, options.encode()) != 0:
        reason = os.strerror(ctypes.get_errno())
        print(f"fabbbr: {kind} on {place} could not be mounted: {reason}")


def _raise_tcp_memory() -> None:
    """Let TCP have three quarters of the memory.

    The kernel lets all its sockets together have an eighth before it shrinks windows and drops what arrived.
    A guest does nothing else, and a host under pressure is not what is studied.
    """
    pages = os.sysconf("SC_PHYS_PAGES")
    low, high = pages // 2, pages * 3 // 4
    Path("/proc/sys/net/ipv4/tcp_mem").write_text(f"{low} {high} {high}", encoding="ascii")


def _agent(limit_s: int) -> int:
    """Exit status of the agent; 124 when it was still running after ``limit_s`` of the guest's clock."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agent.lab", "work/job.json", "work"], stdin=subprocess.DEVNULL
    )
    late = []

    def end(*_: object) -> None:
        late.append(True)
        process.kill()

    # No timeout of wait(): that would look at the process again and again, and every look is an event.
    signal.signal(signal.SIGALRM, end)
    signal.alarm(limit_s)
    status = process.wait()
    return 124 if late else status


if __name__ == "__main__":
    # On any other machine it would lay empty file systems over those that are there.
    if os.getpid() != 1 or "FABBBR_MOUNTS" not in os.environ:
        sys.exit("this is the first process of a guest, and this machine is none")
    os.environ.update(
        PATH="/usr/sbin:/usr/bin",
        HOME="/root",
        LC_ALL="C.UTF-8",
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONHASHSEED="0",
    )
    main()
