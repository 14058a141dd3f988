"""The role on this machine itself, in a room of namespaces: no network, and memory over every folder."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LAY_OVER = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs none "$1"
for folder in etc usr var; do
	over=$1/$folder
	mkdir -p "$over/upper" "$over/work"
	mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$over/upper,workdir=$over/work" "/$folder"
done
mount -t tmpfs none /run
ip link set lo up
"""
"""Shell text that makes the room; its first argument is an empty folder."""

PLAY = r"""
mkdir -p "$1/home"
export HOME="$1/home" ANSIBLE_LOCAL_TEMP="$1/ansible" ANSIBLE_REMOTE_TEMP="$1/remote" ANSIBLE_NOCOLOR=1
# Whatever init runs here, units belong to the room.
export SYSTEMD_OFFLINE=1
shift
exec "$@"
"""
"""Shell text that goes on in the room with the command behind the first argument."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """How a run of the playbook ended."""

    status: int
    changed: int
    output: str


def play(inside: Sequence[str | Path], inventory: Path, *arguments: str) -> Played:
    """Run ``bbr.yml`` by way of a command that brings its arguments into a room."""
    inventory.write_text(
        f"[tcp_hosts]\nnode ansible_connection=local ansible_python_interpreter={sys.executable}\n"
    )
    playbook = Path(__file__).parents[1] / "playbooks" / "bbr.yml"
    ansible = Path(sys.executable).parent / "ansible-playbook"
    done = subprocess.run(
        (*inside, ansible, "-v", "-i", inventory, playbook, *arguments),
        capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    output = done.stdout + done.stderr
    changed = re.search(r"^node\s.*\bchanged=(\d+)", output, re.MULTILINE)
    return Played(status=done.returncode, changed=int(changed[1]) if changed else 0, output=output)
