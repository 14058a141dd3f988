"""The root file system of a node: this machine's, with the node's own files laid over it in memory."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fabbbr.sandbox.ground import tools
from fabbbr.sandbox.ground.images import USER_ID, File

_HIDDEN = (
    "tmp",
    "run",
    "home",
    "root",
    "srv",
    "mnt",
    "media",
    "dev",
    "boot",
    "etc/ssh",
    "etc/sudoers.d",
    "var/log",
    "var/tmp",
)
"""Folders of this machine that a node does not see."""

_DEVICES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
}
_LINKS = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
          "stderr": "/proc/self/fd/2"}  # fmt: skip


class Root:
    """An overlay in ``folder``, which is on a file system in memory; mounted as long as the node lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._upper = folder / "upper"
        self.path = folder / "root"

    def make(self, files: dict[str, File | None], user: str, keys: tuple[str, ...]) -> None:
        """Write the node's own files, then mount."""
        for part in ("upper", "work", "root"):
            (self._folder / part).mkdir(parents=True, mode=0o755)
        for hidden in _HIDDEN:
            self._hide(hidden)
        for path, file in files.items():
            self._write(path, file)
        self._devices()
        self._home(user, keys)
        layers = f"lowerdir=/,upperdir={self._upper},workdir={self._folder / 'work'}"
        tools.run("mount", "-t", "overlay", "-o", layers, "overlay", str(self.path))

    def remove(self) -> None:
        """Unmount, and forget every file."""
        tools.run("umount", "-l", str(self.path))
        shutil.rmtree(self._folder)

    def _folder_of(self, path: str) -> Path:
        """A folder of the upper layer, with the mode of the one that it covers."""
        made = self._upper
        for part in Path(path).parts:
            made = made / part
            below = Path("/") / made.relative_to(self._upper)
            if not made.exists():
                made.mkdir()
                made.chmod(stat.S_IMODE(below.stat().st_mode) if below.exists() else 0o755)
        return made

    def _hide(self, path: str) -> None:
        folder = self._folder_of(path)
        folder.chmod({"root": 0o700, "tmp": 0o1777, "var/tmp": 0o1777}.get(path, 0o755))
        os.setxattr(folder, "trusted.overlay.opaque", b"y")

    def _write(self, path: str, file: File | None) -> None:
        target = self._folder_of(str(Path(path).parent)) / Path(path).name
        if file is None:
            if Path("/", path).exists():
                os.mknod(target, stat.S_IFCHR, 0)  # overlayfs reads this as "there is no such file"
            return
        target.write_text(file.text)
        target.chmod(file.mode)
        os.chown(target, file.user, file.user)

    def _devices(self) -> None:
        devices = self._upper / "dev"
        for name, (major, minor) in _DEVICES.items():
            self._node(devices / name, major, minor)
        (devices / "net").mkdir()
        self._node(devices / "net/tun", 10, 200)
        for name, target in _LINKS.items():
            (devices / name).symlink_to(target)
        (devices / "pts").mkdir()
        (devices / "shm").mkdir()
        (devices / "shm").chmod(0o1777)

    @staticmethod
    def _node(path: Path, major: int, minor: int) -> None:
        os.mknod(path, stat.S_IFCHR, os.makedev(major, minor))
        path.chmod(0o666)

    def _home(self, user: str, keys: tuple[str, ...]) -> None:
        home = self._upper / "home" / user
        ssh = home / ".ssh"
        ssh.mkdir(parents=True)
        allowed = ssh / "authorized_keys"
        allowed.write_text("".join(f"{key}\n" for key in keys))
        for path, mode in ((home, 0o700), (ssh, 0o700), (allowed, 0o600)):
            path.chmod(mode)
            os.chown(path, USER_ID, USER_ID)


def new_host_key() -> str:
    """An ed25519 key in OpenSSH's own format."""
    return (
        Ed25519PrivateKey.generate()
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        .decode()
    )
