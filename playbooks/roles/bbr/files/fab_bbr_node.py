"""What the role asks a node about BBR and has it do: survey, load, unload, register, verify.

It runs on the node under the Python that Ansible uses there (3.8 or newer, standard library only), is fed to that
Python's standard input and leaves nothing behind. It prints one JSON object; a refusal is the key ``refused``, with
the reason and the remedy in words, and exit status 1.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MODULE = "fab_bbr"
ALGORITHMS = ("fab_bbr2", "fab_bbr3")
SYSFS = Path("/sys/module/fab_bbr")
BPF_STATE = Path("/run/fab-bbr-bpf")
"""What the loader of the BPF programs leaves; like them it does not outlive the boot."""
BPF_LOADER = "/usr/local/sbin/fab-bbr-bpf"
TCP = Path("/proc/sys/net/ipv4")
NOBODY = 65534
FLOW_BYTES = 4_000_000
FLOW_TIMEOUT_S = 60.0
ON_OFF = {True: "on", False: "off", None: "unknown"}


class RefusedError(Exception):
    """The node cannot do what was asked; the message is for the user."""


def main(argv: list[str]) -> int:
    commands: dict[str, Callable[..., dict[str, object]]] = {
        "survey": survey,
        "load": load,
        "unload": unload,
        "profile": profile,
        "verify": verify,
    }
    try:
        answer, status = commands[argv[0]](*argv[1:]), 0
    except RefusedError as refusal:
        answer, status = {"refused": str(refusal)}, 1
    sys.stdout.write(json.dumps(answer, sort_keys=True) + "\n")
    return status


def survey() -> dict[str, object]:
    """What the running kernel offers, from where, and why it takes no modules, if so."""
    carrier = _carrier()
    return {
        "allowed": _words(TCP / "tcp_allowed_congestion_control"),
        # Google's BBRv3 kernels offer theirs as "bbr" too and say so only here.
        "bbr_module_version": _text(Path("/sys/module/tcp_bbr/version")),
        "bbr_is_module": _loaded("tcp_bbr"),
        "modules_refused": modules_refused(
            loadable=Path("/proc/modules").exists(),
            disabled=_text(Path("/proc/sys/kernel/modules_disabled")),
        ),
        "offered": _words(TCP / "tcp_available_congestion_control"),
        "profile": _profile(carrier),
        "source": _source(carrier),
        "versions": sorted(folder.name.partition("-")[2] for folder in Path("/usr/src").glob(MODULE + "-*")),
        "way": _way(carrier),
    }


def load(wanted_source: str) -> dict[str, object]:
    """Load the module that is installed, in place of another build of it; refuse with the reason."""
    _release_module()
    done = _run("modprobe", MODULE)
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip()) + "\n" + _kernel_said()
        raise RefusedError(why_not_loaded(words, secure_boot=_secure_boot(), lockdown=_lockdown()))
    source = _text(SYSFS / "parameters/source")
    if source != wanted_source:
        msg = (
            f"modprobe {MODULE} loaded source {source}, not the {wanted_source} just installed: another copy comes "
            f"first in /lib/modules/{os.uname().release} (modinfo -n {MODULE} names it); remove that"
        )
        raise RefusedError(msg)
    return survey()


def unload() -> dict[str, object]:
    """Take the module out of the kernel."""
    return {"changed": _release_module()}


def profile(wanted: str) -> dict[str, object]:
    """What new ``fab_bbr2`` connections are from now on."""
    carrier = _carrier()
    if _profile(carrier) == wanted:
        return {"changed": False}
    if carrier == "bpf":
        done = _run(BPF_LOADER, "profile", wanted)
        said = done.stderr
    else:
        try:
            (SYSFS / "parameters/profile").write_text(wanted, encoding="ascii")
            said = ""
        except OSError as error:
            said = f"{SYSFS}/parameters/profile: {error}"
    if _profile(carrier) != wanted:
        message = f"the profile of fab_bbr2 stays {_profile(carrier)} instead of {wanted}: {last_line(said)}"
        raise RefusedError(message)
    return {"changed": True}


def verify(*algorithms: str) -> dict[str, object]:
    """Send a flow over loopback with each algorithm, as an ordinary user, and give what ``ss`` says of each."""
    return {"sockets": {name: _flow(name) for name in algorithms}}


def modules_refused(*, loadable: bool, disabled: str | None) -> str | None:
    """Why this kernel takes no module at all, or None where it may."""
    if not loadable:
        return "the kernel was built without loadable modules (there is no /proc/modules)"
    if disabled == "1":
        return "loading modules is switched off until the next boot (kernel.modules_disabled = 1)"
    return None


def why_not_loaded(words: str, *, secure_boot: bool | None, lockdown: str | None) -> str:
    """The reason why modprobe failed, with the remedy, from its own words and the kernel's."""
    said = last_line(words.strip().splitlines()[0]) if words.strip() else "no reason given"
    signature = re.search(
        r"key was rejected by service|required key not available|module verification failed"
        r"|lockdown: modprobe: unsigned module loading is restricted",
        words,
        re.IGNORECASE,
    )
    if signature or (lockdown not in {None, "none"} and "Operation not permitted" in words):
        state = f"secure boot {ON_OFF[secure_boot]}, lockdown {lockdown or 'unknown'}"
        return (
            f"the kernel takes only signed modules ({state}): {said}; enrol the key that DKMS signs with (mokutil "
            "--import /var/lib/dkms/mok.pub, or /var/lib/shim-signed/mok/MOK.der, then reboot and confirm at the "
            "console), switch secure boot off, or take bbr_way=bpf"
        )
    if "Unknown symbol" in words or "Invalid module format" in words or "disagrees about version" in words:
        return f"the module was built against the headers of another kernel: {said}; reboot into the installed kernel"
    return f"modprobe {MODULE} failed: {said}"


def last_line(text: str) -> str:
    r"""The last line of ``text`` that says something.

    >>> last_line("libbpf: a\nlibbpf: b\n\n")
    'libbpf: b'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _carrier() -> str | None:
    """What carries the algorithms that are offered: the kernel itself, the module, the BPF programs, or no one knows."""
    if not set(ALGORITHMS) <= set(_words(TCP / "tcp_available_congestion_control")):
        return None
    if (BPF_STATE / "ids").exists():
        return "bpf"
    if _loaded(MODULE):
        return "module"
    return "kernel" if SYSFS.exists() else "unknown"


def _way(carrier: str | None) -> str | None:
    if carrier != "module":
        return carrier
    return "dkms" if Path("/var/lib/dkms", MODULE).exists() else "make"


def _source(carrier: str | None) -> str | None:
    return _text(BPF_STATE / "source" if carrier == "bpf" else SYSFS / "parameters/source")


def _profile(carrier: str | None) -> str | None:
    if carrier == "bpf":
        return _run(BPF_LOADER, "profile").stdout.strip() or None
    return _text(SYSFS / "parameters/profile")


def _loaded(module: str) -> bool:
    lines = (_text(Path("/proc/modules")) or "").splitlines()
    return any(line.split(" ", 1)[0] == module for line in lines)


def _release_module() -> bool:
    if not SYSFS.exists():
        return False
    if (_text(TCP / "tcp_congestion_control") or "") in (*ALGORITHMS, "fab_bbr1", "fab_bbr1_cap3"):
        msg = (
            "net.ipv4.tcp_congestion_control names an algorithm of fab_bbr: set another default first "
            "(sysctl net.ipv4.tcp_congestion_control=cubic)"
        )
        raise RefusedError(msg)
    done = _run("rmmod", MODULE)
    if done.returncode != 0:
        msg = f"{last_line(done.stderr)}: connections still use fab_bbr (ss -ti | grep -B1 fab_bbr); end them, or reboot"
        raise RefusedError(msg)
    return True


def _flow(algorithm: str) -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        sink = threading.Thread(target=_drain, args=(listener,), daemon=True)
        sink.start()
        port = int(listener.getsockname()[1])
        with _plain_user(), socket.socket() as sender:
            try:
                sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
            except OSError as error:
                msg = f"an ordinary user may not choose {algorithm}: {error}"
                raise RefusedError(msg) from error
            said = _send(sender, port, algorithm)
        sink.join(FLOW_TIMEOUT_S)
        return said


def _send(sender: socket.socket, port: int, algorithm: str) -> str:
    sender.settimeout(FLOW_TIMEOUT_S)
    try:
        sender.connect(("127.0.0.1", port))
        sender.sendall(bytes(FLOW_BYTES))
    except OSError as error:
        msg = f"a loopback flow with {algorithm} failed: {error}"
        raise RefusedError(msg) from error
    # ACKs of the last packets may still be on their way through the softirq.
    time.sleep(0.1)
    done = _run("ss", "-tinH", "dport", "=", f":{port}")
    said = " ".join(done.stdout.split())
    if reason := why_not_shown(algorithm, said or done.stderr.strip()):
        raise RefusedError(reason)
    return said


def why_not_shown(algorithm: str, said: str) -> str | None:
    """Why what ss said of a socket is no proof that it uses the algorithm, or None where it is one."""
    if algorithm in said.split():
        return None
    if said.startswith("ESTAB") and "bytes_sent:" not in said:
        # It fell back to /proc/net/tcp, which tells little. An experiment could not watch its flows there either.
        return (
            "ss cannot look into sockets: this kernel has not loaded tcp_diag (modprobe tcp_diag; where loading is "
            "switched off, have it loaded at boot before that: /etc/modules-load.d)"
        )
    return f"ss does not show {algorithm} on a flow that asked for it: {said}"


def _drain(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        while connection.recv(1 << 20):
            pass


@contextlib.contextmanager
def _plain_user() -> Iterator[None]:
    """Ordinary rights while it lasts: root may choose any algorithm, users only the allowed ones."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)


def _secure_boot() -> bool | None:
    """Whether UEFI secure boot is on; None where the firmware does not say."""
    for variable in Path("/sys/firmware/efi/efivars").glob("SecureBoot-*"):
        with contextlib.suppress(OSError):
            return variable.read_bytes()[-1:] == b"\x01"
    return None


def _lockdown() -> str | None:
    match = re.search(r"\[(\w+)\]", _text(Path("/sys/kernel/security/lockdown")) or "")
    return match[1] if match else None


def _kernel_said() -> str:
    lines = _run("dmesg").stdout.splitlines()[-20:]
    return "\n".join(line for line in lines if MODULE in line or "ockdown" in line)


def _words(path: Path) -> list[str]:
    return (_text(path) or "").split()


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=FLOW_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(argv, 127, "", f"{argv[0]} could not be run: {error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
