"""The programs that a cell's raw files come from, and their versions."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

from fabbbr.errors import EnvironmentUnfitError

NODE_PYTHON = "/usr/bin/python3"
"""The system's Python: the one that the distribution's Mininet package is installed for."""

WAY_INTO_NAME_SPACES = (
    "'ip netns exec' mounts /sys anew, which takes a root that is a mount point, as a container's is and a "
    "chroot's is not (mount --bind ROOT ROOT before chroot ROOT), and CAP_SYS_ADMIN; or use --backend guest"
)
"""What to do where name spaces can be made and not entered."""

_VERSION_COMMANDS = {
    "iperf3": ("iperf3", "--version"),
    "ss": ("ss", "-V"),
    "tc": ("tc", "-V"),
    "ethtool": ("ethtool", "--version"),
    "ping": ("ping", "-V"),
    "mininet": (NODE_PYTHON, "-c", "import mininet.net; print('mininet', mininet.net.VERSION)"),
    "python": (NODE_PYTHON, "--version"),
}
_PACKAGES = {"ss": "iproute2", "tc": "iproute2", "ping": "iputils-ping"}


def tool_versions() -> dict[str, str]:
    """Tool → first line of its version; raise EnvironmentUnfitError naming all packages that are missing."""
    versions = tools_found()
    missing = sorted({_PACKAGES.get(tool, tool) for tool in _VERSION_COMMANDS.keys() - versions.keys()})
    if missing:
        message = (
            f"missing on this machine: {', '.join(missing)}; install them: apt-get "
            f"install {' '.join(missing)}"
        )
        raise EnvironmentUnfitError(message)
    return versions


@cache
def tools_found() -> dict[str, str]:
    """Tool → first line of its version, of those that are here."""
    said = {tool: _first_line(argv) for tool, argv in _VERSION_COMMANDS.items()}
    return {tool: line for tool, line in said.items() if line is not None}


def _first_line(argv: tuple[str, ...]) -> str | None:
    program = shutil.which(argv[0], path=search_path())
    if program is None:
        return None
    done = subprocess.run(
        (program, *argv[1:]),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        return None
    return ((done.stdout or done.stderr).splitlines() or [""])[0].strip()


def search_path() -> str:
    """PATH with the folders of system tools, which Debian leaves out for ordinary users."""
    import os

    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/bin", "/bin"])
