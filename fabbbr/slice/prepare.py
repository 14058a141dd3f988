"""Has Ansible prepare the machines of a slice: packages, congestion controls, settings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fabbbr import bundled
from fabbbr.errors import BackendError, EnvironmentUnfitError

_LINES_TOLD = 5
_WORST = ("fatal:", "ERROR", "[ERROR]", "failed:")


def prepare(
    inventory: dict[str, Any],
    tell: Callable[[str], None],
    *,
    variables: Mapping[str, Any] | None = None,
    playbook: Path | None = None,
) -> None:
    """Run the playbook (default: the bundled ``prepare.yml``) over the inventory; ``tell`` gets its tasks.

    ``variables`` go before those of roles and inventory.

    Raise EnvironmentUnfitError where there is no Ansible, BackendError with its own words when a task failed.
    """
    play = playbook or bundled.folder("playbooks") / "prepare.yml"
    program = _program()
    with tempfile.TemporaryDirectory(prefix="fabbbr-ansible-") as folder:
        file = Path(folder) / "inventory.json"
        file.write_text(json.dumps(inventory), encoding="utf-8")
        file.chmod(0o600)
        (file.parent / "ansible.cfg").touch()
        with subprocess.Popen(
            (program, "-i", str(file), "--extra-vars", json.dumps(dict(variables or {})), str(play)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=_environment(play.parent, Path(folder)),
        ) as process:
            try:
                worst = _follow(process, tell)
            except BaseException:
                process.terminate()
                raise
    if process.returncode != 0:
        why = worst or f"status {process.returncode}"
        message = (
            f"Ansible could not prepare the machines: {why}; the same command tries again, --skip-prepare "
            "leaves it out"
        )
        raise BackendError(message)


def _follow(process: subprocess.Popen[str], tell: Callable[[str], None]) -> str:
    """Tell the names of tasks; return the lines that say what went wrong."""
    assert process.stdout is not None
    worst: list[str] = []
    for line in process.stdout:
        words = line.strip()
        if words.startswith(("TASK [", "PLAY [")):
            tell(words.rstrip("* "))
        if words.startswith(_WORST):
            worst.append(words)
    return " | ".join(worst[:_LINES_TOLD])


def _environment(playbooks: Path, scratch: Path) -> dict[str, str]:
    own = {
        # Nothing of the user's: the same playbook does the same everywhere.
        "ANSIBLE_CONFIG": str(scratch / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCAL_TEMP": str(scratch),
        "ANSIBLE_CONNECTION_PLUGINS": str(playbooks / "connection_plugins"),
        "ANSIBLE_ROLES_PATH": str(playbooks / "roles"),
        # A play whose hosts are not in the inventory would do nothing, and say that all is well.
        "ANSIBLE_HOST_PATTERN_MISMATCH": "error",
        "ANSIBLE_PIPELINING": "1",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    return {"LC_ALL": "C.UTF-8", **kept, **own}


def _program() -> str:
    beside = Path(sys.executable).with_name("ansible-playbook")
    found = str(beside) if beside.exists() else shutil.which("ansible-playbook")
    if found is None:
        message = "ansible-playbook is not there; pip install 'fabbbr[ansible]', or give --skip-prepare"
        raise EnvironmentUnfitError(message)
    return found
