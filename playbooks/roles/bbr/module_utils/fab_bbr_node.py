# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""A node as it shows itself: what its kernel offers, what carries fab_bbr, what its tools say.

Python 3.6 and the standard library only: it runs under the Python that Ansible uses on the node.
"""

from typing import List, Optional

from ansible.module_utils import fab_node
from ansible.module_utils.fab_node import Said

ALGORITHMS = ("fab_bbr2", "fab_bbr3")


class Node(fab_node.Node):  # type: ignore[misc]  # Ansible's imports have no types
    """The node that a module runs on, and what of fab_bbr is there."""

    def words(self, name: str) -> List[str]:
        return (self.text(name) or "").split()

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
        found: Optional[str] = self.text("run/fab-bbr-bpf/source")
        return found if self.carrier == "bpf" else self.parameter("source")

    @property
    def profile(self) -> Optional[str]:
        """What a new connection with ``fab_bbr2`` is."""
        if self.carrier == "bpf":
            return self.run_bpf_loader("profile").out.strip() or None
        return self.parameter("profile")

    def parameter(self, name: str) -> Optional[str]:
        """A parameter of the module ``fab_bbr`` in force."""
        value: Optional[str] = self.text("sys/module/fab_bbr/parameters/" + name)
        return value

    def loaded(self, module: str) -> bool:
        """Whether it is loaded; one that is built in is not."""
        lines = (self.text("proc/modules") or "").splitlines()
        return any(line.split(" ", 1)[0] == module for line in lines)
