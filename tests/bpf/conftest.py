"""What the tests of the BPF congestion controls share: compiled objects, a place for them, a network."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from bpf.machine import Loader, Network

FILES = Path(__file__).parents[2] / "playbooks" / "roles" / "bbr" / "files"
HERE = Path(__file__).parent
TURN, TURN_S = Path("/run/fabbbr-bpf-tests.lock"), 900
"""Longer than the tests of any file here take, on a busy machine too."""
CLANGS = ("clang", *(f"clang-{version}" for version in range(14, 21)))


@pytest.fixture(scope="session", autouse=True)
def _able():
    """These tests need root, BTF and namespaces; the Makefile leaves them out where `able` says no."""
    answer = subprocess.run([HERE / "able"], capture_output=True, text=True, check=False)
    if answer.returncode:
        pytest.fail(f"{answer.stderr.strip()}; deselect with -m 'not bpf'")


@pytest.fixture(scope="module", autouse=True)
def _alone():
    """Congestion controls are the whole kernel's: two checkouts that test at once take turns."""
    with TURN.open("w") as turn:
        waited = subprocess.run(
            ("flock", "-w", str(TURN_S), str(turn.fileno())), pass_fds=(turn.fileno(),), check=False
        )
        if waited.returncode:
            pytest.fail(f"other tests of BPF have run for {TURN_S} s: end them (fuser -v {TURN} shows them)")
        yield


@pytest.fixture(scope="session")
def objects(tmp_path_factory):
    """The folder of the objects that a node gets."""
    folder = tmp_path_factory.mktemp("objects")
    subprocess.run(["make", "--silent", "-C", FILES / "bpf", f"OUT={folder}"], check=True, timeout=120)
    return folder


@pytest.fixture(scope="session")
def compile_bpf(tmp_path_factory):
    """Compile a BPF source with further macros; the object's path."""
    folder = tmp_path_factory.mktemp("bpf")
    clang = next((name for name in CLANGS if shutil.which(name)), None)
    assert clang, "no clang: apt-get install clang"

    def compile_(source, *macros, name=None):
        out = folder / f"{name or source.stem}.o"
        flags = ["-target", "bpf", "-mcpu=v3", "-g", "-O2", "-std=gnu11", f"-D__TARGET_ARCH_{target_arch()}"]
        folders = [
            "-I",
            FILES,
            "-I",
            FILES / "bpf",
            "-idirafter",
            f"/usr/include/{os.uname().machine}-linux-gnu",
        ]
        subprocess.run([clang, *flags, *macros, *folders, "-c", source, "-o", out], check=True, timeout=60)
        return out

    return compile_


@pytest.fixture(scope="session")
def compile_library(tmp_path_factory):
    """Compile a C source to a shared library; its path."""
    folder = tmp_path_factory.mktemp("user")

    def compile_(source):
        out = folder / f"{source.stem}.so"
        flags = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", FILES]
        subprocess.run(["gcc", *flags, source, "-o", out], check=True, timeout=60)
        return out

    return compile_


@pytest.fixture
def loader(objects):
    """`fab-bbr-bpf` with /run and /sys/fs/bpf of its own; whatever a test loads is unloaded."""
    with Loader(script=FILES / "bpf" / "fab-bbr-bpf", objects=objects) as found:
        yield found


@pytest.fixture
def network():
    """Sender, path and receiver, each in a network namespace."""
    with Network() as made:
        yield made


def target_arch():
    return {"x86_64": "x86", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
