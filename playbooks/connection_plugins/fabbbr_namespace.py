# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""Ansible's way to a node that is a network name space of the machine it runs on."""

from __future__ import annotations

DOCUMENTATION = """
name: fabbbr_namespace
short_description: Runs on a network name space of this machine
description:
  - Runs tasks inside a network name space of the controller, which must be run as root.
  - Interfaces, routes and settings of the network are the node's own; files are the controller's, so they
    are put and fetched by plain copies.
author: The fabbbr authors
options:
  namespace:
    description: The name of the name space, as C(ip netns) knows it.
    type: str
    vars:
      - name: fabbbr_namespace
  pid:
    description:
      - A process whose network and mount name spaces are the node's, in place of a name. Of a Mininet node
        it is its shell, C(node.pid).
    type: int
    vars:
      - name: fabbbr_pid
extends_documentation_fragment: [connection_pipelining]
"""

import os
import shutil
import subprocess
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase, ensure_connect


class Connection(ConnectionBase):
    """A network name space of this machine."""

    transport = "fabbbr_namespace"
    has_pipelining = True

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._enter: tuple[str, ...] = ()

    def _connect(self) -> Connection:
        if not self._connected:
            self._enter = entering(self.get_option("namespace"), self.get_option("pid"))
            self._connected = True
        return self

    @ensure_connect
    def exec_command(
        self,
        cmd: str,
        in_data: bytes | None = None,
        sudoable: bool = True,  # noqa: FBT001, FBT002  (Ansible's signature)
    ) -> tuple[int, bytes, bytes]:
        """Run a command of the shell there."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        done = subprocess.run(
            (*self._enter, "/bin/sh", "-c", cmd),
            input=in_data or b"",
            capture_output=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    @ensure_connect
    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file to there."""
        super().put_file(in_path, out_path)
        _copy(in_path, out_path)

    @ensure_connect
    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file from there."""
        super().fetch_file(in_path, out_path)
        _copy(in_path, out_path)

    def close(self) -> None:
        """Nothing stands open."""
        self._connected = False

    def reset(self) -> None:
        """Look again for the name space: another may have its name now."""
        self.close()


def entering(namespace: str | None, pid: int | None) -> tuple[str, ...]:
    """The words before each command; raise AnsibleConnectionFailure where there is no such name space."""
    if (namespace is None) == (pid is None):
        message = "set either fabbbr_namespace (a name that `ip netns` lists) or fabbbr_pid (a process in it)"
        raise AnsibleConnectionFailure(message)
    if os.geteuid() != 0:
        message = "only root may enter a network name space: run ansible-playbook as root"
        raise AnsibleConnectionFailure(message)
    if namespace is not None:
        if not Path("/run/netns", namespace).exists():
            message = f"there is no network name space {namespace}: `ip netns list` shows those that are"
            raise AnsibleConnectionFailure(message)
        return ("ip", "netns", "exec", namespace)
    if not Path(f"/proc/{pid}/ns/net").exists():
        message = f"process {pid} has ended, and with it the name space of the node"
        raise AnsibleConnectionFailure(message)
    # Its mount name space too: there /sys shows the node's interfaces.
    return ("nsenter", f"--target={pid}", "--net", "--mount", "--")


def _copy(source: str, to: str) -> None:
    try:
        shutil.copyfile(source, to)
    except FileNotFoundError as error:
        raise AnsibleFileNotFound(file_name=error.filename) from error
    except shutil.SameFileError:
        return
    except OSError as error:
        message = f"{source} could not be copied to {to}: {error}"
        raise AnsibleConnectionFailure(message) from error
