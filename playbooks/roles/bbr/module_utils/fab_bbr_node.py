# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""A node as it shows itself: what its kernel offers, what carries fab_bbr, what its tools say.

Python 3.6 and the standard library only: it runs under the Python that Ansible uses on the node.
"""

from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Tuple

ALGORITHMS = ("fab_bbr2", "fab_bbr3")


class RefusedError(Exception):
    """The node cannot do what was asked; the message is for the user."""


class Said(NamedTuple):
    """What a command left."""

    status: int
    out: str
    err: str

    @property
    def last_error(self) -> str:
        """The last line on standard error that says something."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        return lines[-1] if lines else ""


class Node:
    """The node that a module runs on.

    ``run_command`` is that of ``AnsibleModule``; ``root`` is the folder below which the node's files are.
    """

    def __init__(self, run_command: Callable[..., Tuple[int, str, str]], root: Path = Path("/")) -> None:
        self._run_command = run_command
        self._root = root

    def path(self, name: str) -> Path:
        """A file of the node by its name from the root, without the first slash."""
        return self._root / name

    def text(self, name: str) -> Optional[str]:
        """What a file holds; None where it cannot be read."""
        try:
            return self.path(name).read_text(encoding="utf-8").strip()
        except OSError:
            return None

    def words(self, name: str) -> List[str]:
        return (self.text(name) or "").split()

    def run(self, *argv: str) -> Said:
        """What a command says, in English; status 127 where there is no such command."""
        try:
            return Said(
                *self._run_command(list(argv), environ_update={"LC_ALL": "C"}, handle_exceptions=False)
            )
        except OSError as error:
            return Said(127, "", f"{argv[0]} could not be run: {error}")

    def run_bpf_loader(self, *words: str) -> Said:
        return self.run(str(self.path("usr/local/sbin/fab-bbr-bpf")), *words)

    @property
    def offered(self) -> List[str]:
        return self.words("proc/sys/net/ipv4/tcp_available_congestion_control")

    @property
    def carrier(self) -> Optional[str]:
        """What carries our algorithms: ``bpf``, ``module``, ``kernel``, ``unknown``; None if nothing does."""
        if not set(ALGORITHMS) <= set(self.offered):
            return None
        # What the loader of the BPF programs writes last; like them it does not outlive the boot.
        if self.path("run/fab-bbr-bpf/source").exists():
            return "bpf"
        if self.loaded("fab_bbr"):
            return "module"
        return "kernel" if self.path("sys/module/fab_bbr").exists() else "unknown"

    @property
    def source(self) -> Optional[str]:
        """The digest of the sources that the algorithms were made of."""
        return self.text("run/fab-bbr-bpf/source") if self.carrier == "bpf" else self.parameter("source")

    @property
    def profile(self) -> Optional[str]:
        """What a new connection with ``fab_bbr2`` is."""
        if self.carrier == "bpf":
            return self.run_bpf_loader("profile").out.strip() or None
        return self.parameter("profile")

    def parameter(self, name: str) -> Optional[str]:
        """A parameter of the module ``fab_bbr`` in force."""
        return self.text("sys/module/fab_bbr/parameters/" + name)

    def loaded(self, module: str) -> bool:
        """Whether it is loaded; one that is built in is not."""
        lines = (self.text("proc/modules") or "").splitlines()
        return any(line.split(" ", 1)[0] == module for line in lines)
