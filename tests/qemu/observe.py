"""What a machine shows of the role's work, read without the role."""

from __future__ import annotations

import hashlib
from pathlib import Path

from qemu.machine import Machine

ROLE = Path(__file__).parents[2] / "playbooks" / "roles" / "bbr"
HASHED = ("fab_bbr_core.h", "fab_bbr_core.c", "fab_bbr_module.c")
SIGHT = (
    "ls /etc/modules-load.d /etc/modprobe.d /etc/sysctl.d /usr/src; "
    "cut -d' ' -f1 /proc/modules | grep -E '^(tcp|sch|fab)_' | sort; dpkg -l"
)
"""Modules of the kinds that the role loads: drivers may still come by themselves, minutes after a boot."""
TRACES = "sudo find / -xdev ( -name '*fab_bbr*' -o -name '*fab-bbr*' )".replace("(", r"\(").replace(
    ")", r"\)"
)

FLOW = """
import os, socket, subprocess, sys, time
with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as sender:
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    sender.connect(listener.getsockname())
    receiver, _ = listener.accept()
    for _ in range(100):
        sender.sendall(bytes(10000))
        assert receiver.recv(10000, socket.MSG_WAITALL) == bytes(10000)
    time.sleep(0.1)
    port = ":%d" % sender.getsockname()[1]
    words = subprocess.check_output(["ss", "-tinH", "sport", "=", port], text=True).split()
    assert "bytes_acked:1000001" in words, words
    print(*words)
"""
"""An ordinary user's flow of 1 MB over loopback, and what ss says of its sender."""


def digest(files: Path) -> str:
    return hashlib.sha256(b"".join((files / name).read_bytes() for name in HASHED)).hexdigest()[:16]


def offered(machine: Machine) -> set[str]:
    return set(machine.says("cat /proc/sys/net/ipv4/tcp_available_congestion_control").split())


def parameter(machine: Machine, name: str) -> str:
    return machine.says(f"cat /sys/module/fab_bbr/parameters/{name}")


def sockets(machine: Machine, *algorithms: str) -> dict[str, str]:
    """What ss says of a loopback flow that an ordinary user sends with each algorithm."""
    return {name: machine.says(f"python3 - {name} <<'SCRIPT'\n{FLOW}\nSCRIPT") for name in algorithms}


def complaints(machine: Machine) -> list[str]:
    """What the kernel complained about, but for a module from outside its tree, which it always notes."""
    lines = machine.says("sudo dmesg").splitlines()
    words = ("fab_bbr", "WARNING:", "BUG:", "Oops", "Call Trace", "refcount", "leak")
    notes = (
        "loading out-of-tree module taints kernel",
        "module verification failed: signature and/or required key missing",
    )
    return [
        line
        for line in lines
        if any(word in line for word in words) and not any(note in line for note in notes)
    ]
