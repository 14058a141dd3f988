"""A whole computer under qemu: a distribution's kernel and system, reached over SSH on loopback only."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from qemu.distributions import Image

LIFETIME_S = 2400
"""A machine that lives longer is ended, whatever became of the test."""
BOOT_TIMEOUT_S = 300
KVM_TRIAL_S = 10
SSH_OPTIONS = (
    "-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR",
    "-o", "IdentitiesOnly=yes",
    "-o", "ConnectTimeout=20",
)  # fmt: skip
ANSIBLE = Path(__file__).parents[2] / ".venv" / "bin" / "ansible-playbook"
PLAYBOOKS = Path(__file__).parents[2] / "playbooks"


@dataclass(frozen=True, kw_only=True)
class Played:
    """How a run of the playbook ended."""

    status: int
    changed: int
    output: str


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine that is up."""

    image: Image
    port: int
    work: Path

    def run(self, command: str, *, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command of the shell over SSH, whatever its exit status."""
        return subprocess.run(
            (*self._ssh, command),
            capture_output=True, text=True, check=False, timeout=timeout_s, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def send(self, file: Path, place: str) -> None:
        """Put a file into the machine, executable."""
        with file.open("rb") as content:
            subprocess.run(
                (*self._ssh, f"sudo install -m 755 /dev/stdin {place}"),
                stdin=content, capture_output=True, check=True, timeout=120,
            )  # fmt: skip

    def says(self, command: str) -> str:
        """What a command prints; it must succeed."""
        done = self.run(command)
        assert done.returncode == 0, f"{command}: {done.stderr or done.stdout}"
        return done.stdout.strip()

    @property
    def console(self) -> str:
        """What the kernel wrote on its console."""
        return (self.work / "console").read_text(errors="replace")

    @property
    def _ssh(self) -> tuple[str | Path, ...]:
        return ("ssh", "-i", self.image.key, "-p", str(self.port), *SSH_OPTIONS, "tester@127.0.0.1")

    @property
    def playbooks(self) -> Path:
        """A copy of the playbooks as they were when the machine was made."""
        return self.work / "playbooks"

    def play(self, *arguments: str, playbooks: Path | None = None, timeout_s: float = 1500) -> Played:
        """Run ``bbr.yml`` against this machine."""
        inventory = self.work / "hosts.ini"
        inventory.write_text(
            f"[tcp_hosts]\nnode ansible_host=127.0.0.1 ansible_port={self.port} ansible_user=tester "
            f"ansible_ssh_private_key_file={self.image.key} "
            f"ansible_ssh_common_args='{' '.join(SSH_OPTIONS)}'\n",
            encoding="utf-8",
        )
        done = subprocess.run(
            (ANSIBLE, "-v", "-i", inventory, (playbooks or self.playbooks) / "bbr.yml", *arguments),
            env={**os.environ, "ANSIBLE_PIPELINING": "1", "ANSIBLE_TIMEOUT": "60", "ANSIBLE_NOCOLOR": "1"},
            capture_output=True, text=True, check=False, timeout=timeout_s, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        output = done.stdout + done.stderr
        changed = re.search(r"^node\s.*\bchanged=(\d+)", output, re.MULTILINE)
        assert changed is not None, output
        return Played(status=done.returncode, changed=int(changed[1]), output=output)

    def reboot(self) -> None:
        """Boot again and wait for it."""
        before = self.says("cat /proc/sys/kernel/random/boot_id")
        self.run("sudo systemctl reboot")
        self.wait(other_than=before)

    def wait(self, *, other_than: str = "") -> None:
        """Wait until the machine is up, in another boot than the one named."""
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                boot = self.run("cat /proc/sys/kernel/random/boot_id", timeout_s=30).stdout.strip()
                if boot not in {"", other_than}:
                    self.run("systemctl is-system-running --wait", timeout_s=BOOT_TIMEOUT_S)
                    return
            time.sleep(1)
        message = (
            f"{self.image.distribution.name} did not come up in {BOOT_TIMEOUT_S} s; its console "
            f"ends:\n{self.console[-2000:]}"
        )
        raise TimeoutError(message)


@contextlib.contextmanager
def up(image: Image, *, cpus: int = 2, lifetime_s: int = LIFETIME_S) -> Iterator[Machine]:
    """Boot a copy of the image; what happens in it is forgotten at the end."""
    with tempfile.TemporaryDirectory(prefix="fabbbr-qemu-") as folder:
        work = Path(folder)
        disk = work / "disk"
        shutil.copytree(PLAYBOOKS, work / "playbooks")
        subprocess.run(
            ("qemu-img", "create", "-q", "-f", "qcow2", "-b", image.folder / "disk", "-F", "raw", disk),
            check=True,
        )
        port = _free_port()
        argv = (
            "timeout", "--kill-after=10", str(lifetime_s),
            *_argv(image, accelerator=accelerator(image), console=work / "console", cpus=cpus),
            "-drive", f"file={disk},if=virtio",
            "-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22",
            "-device", "virtio-net-pci,netdev=net",
            "-device", "virtio-rng-pci",
        )  # fmt: skip
        with _running(argv):
            machine = Machine(image=image, port=port, work=work)
            machine.wait()
            yield machine


@contextlib.contextmanager
def _running(argv: tuple[str | Path, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """The process and its children while it lasts."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@functools.cache
def accelerator(image: Image) -> str:
    """KVM where a kernel really runs under it; a /dev/kvm that opens may be one whose guests stand still."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    with tempfile.TemporaryDirectory(prefix="fabbbr-qemu-") as folder:
        console = Path(folder, "console")
        with (
            _running(_argv(image, accelerator="kvm", console=console)) as trial,
            contextlib.suppress(subprocess.TimeoutExpired),
        ):
            trial.wait(timeout=KVM_TRIAL_S)
        return "kvm" if console.exists() and console.stat().st_size > 0 else "tcg"


def _argv(image: Image, *, accelerator: str, console: Path, cpus: int = 2) -> tuple[str | Path, ...]:
    cpu = "host" if accelerator == "kvm" else "max"
    return (
        "qemu-system-x86_64", "-machine", "q35", "-accel", accelerator, "-cpu", cpu, "-smp", str(cpus),
        "-m", "1024",
        "-nodefaults", "-display", "none", "-serial", f"file:{console}",
        "-kernel", image.folder / "kernel", "-initrd", image.folder / "initrd",
        "-append", "root=/dev/vda rw console=ttyS0",
    )  # fmt: skip


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
