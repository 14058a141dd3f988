"""A real sshd on loopback, that ends with the block: for root, whose key is made for it."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")
_START = 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"'
"""sshd wants its folder below /run, and the machine's own is not touched."""
_OWN_FILES = "mount -t tmpfs none /var/lib && "


def cannot() -> str:
    """Why there can be no sshd here; empty when there can."""
    if os.geteuid() != 0:
        return "sshd for root needs root"
    if SSHD is None or shutil.which("ssh") is None:
        return "openssh-server and openssh-client are not installed"
    if subprocess.run(("unshare", "--mount", "true"), capture_output=True, check=False).returncode != 0:
        return "the kernel allows no mount name spaces"
    return ""


class Sshd:
    """One server: where it listens, the key that it takes, and the words of its log."""

    def __init__(self, folder: Path, port: int, address: str = "127.0.0.1") -> None:
        self.folder, self.port, self.address = folder, port, address
        self.key = folder / "key"
        self.log = folder / "sshd.log"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"


@contextlib.contextmanager
def sshd(folder: Path, *, before=(), address="127.0.0.1", port=None, settings=(), own_files=False):
    """``before``: words before the server's command, as to start it in a name space.

    ``own_files``: what lies below /var/lib is this server's alone, as on a machine of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    server = Sshd(folder, port or _free_port(), address)
    for key in (server.key, folder / "host_key"):
        if not key.exists():
            subprocess.run(("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", key), check=True)
    shutil.copy(f"{server.key}.pub", folder / "authorized_keys")
    (folder / "sshd_config").write_text(
        "\n".join(
            (
                f"ListenAddress {address}:{server.port}",
                f"HostKey {folder / 'host_key'}",
                f"AuthorizedKeysFile {folder / 'authorized_keys'}",
                "PermitRootLogin prohibit-password",
                "StrictModes no",
                "UsePAM no",
                "PidFile none",
                "MaxStartups 200",
                *settings,
                "",
            )
        )
    )
    start = _OWN_FILES + _START if own_files else _START
    command = (*before, "unshare", "--mount", "sh", "-c", start, "sh", SSHD, "-D", "-e")
    with (
        server.log.open("ab") as log,
        subprocess.Popen(
            (*command, "-f", folder / "sshd_config"), stdout=log, stderr=log, start_new_session=True
        ) as process,
    ):
        try:
            _await(server, process, before)
            yield server
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as asking:
        asking.bind(("127.0.0.1", 0))
        return asking.getsockname()[1]


def _await(server, process, before):
    knock = f"import socket; socket.create_connection(({server.address!r}, {server.port}), 1).close()"
    for _ in range(200):
        if (
            subprocess.run(
                (*before, sys.executable, "-c", knock), capture_output=True, check=False
            ).returncode
            == 0
        ):
            return
        assert process.poll() is None, server.log.read_text()
        time.sleep(0.05)
    raise AssertionError(server.log.read_text())
