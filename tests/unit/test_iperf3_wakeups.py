"""The library that is preloaded into iperf3, in a process that reads as iperf3 does; and when it is used."""

import json
import os
import shutil
import socket
import subprocess
import sys
import types

import pytest

from fabbbr.backends.guest import wakeups
from fabbbr.backends.guest.image.root import WAKEUPS, WAKEUPS_LIBRARY, Root

LIMIT_S = 60
BLOCK_BYTES = 1448
READER = f"""
import json, os, socket, sys, threading
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
told = []

def read_stream():
    while True:
        try:
            block = os.read(connection.fileno(), {BLOCK_BYTES})
        except BlockingIOError:
            told.append("again")
            continue
        told.append(len(block))
        if not block:
            return

said = os.read(connection.fileno(), 7).decode()
thread = threading.Thread(target=read_stream)
thread.start()
thread.join()
print(json.dumps([said, told]))
"""


def test_the_library_is_for_virtual_time_only():
    assert wakeups.environment("virtual") == {"LD_PRELOAD": WAKEUPS_LIBRARY}
    assert wakeups.environment("real") == {}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    built = tmp_path_factory.mktemp("library") / "wakeups.so"
    argv = ("gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-o", built, WAKEUPS)
    subprocess.run(argv, check=True, timeout=LIMIT_S)
    return built


@pytest.fixture
def told(library):
    """What a reader hears: what its main thread read, and each answer that its other thread got."""

    def run(*pieces):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(LIMIT_S)
            reader = subprocess.Popen(
                [sys.executable, "-c", READER, str(listener.getsockname()[1])],
                env=os.environ | {"LD_PRELOAD": str(library)},
                stdout=subprocess.PIPE,
            )
            connection, _ = listener.accept()
            with connection:
                for piece in pieces:
                    connection.sendall(piece)
        out, _ = reader.communicate(timeout=LIMIT_S)
        return json.loads(out)

    return run


@pytest.mark.parametrize("size", [1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 5_000_001])
def test_all_that_was_sent_is_told_in_blocks_and_no_part_is_kept_back(told, size):
    said, answers = told(b"control" + bytes(size))
    assert said == "control"
    assert sum(answer for answer in answers if answer != "again") == size
    assert answers[-1] == 0
    parts = [place for place, answer in enumerate(answers[:-1]) if answer not in ("again", BLOCK_BYTES)]
    # iperf3 goes on with a block that is cut short until it is told to try again.
    assert [answers[place + 1] for place in parts] == ["again"] * len(parts)
    assert answers.count("again") == len(parts)


def test_a_control_message_is_read_as_it_came(told):
    said, answers = told(b"hello, ", b"world")
    assert (said, answers) == ("hello, ", [5, "again", 0])


CALLER = f"""
import ctypes, os, socket, sys, threading
libc = ctypes.CDLL(None)
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
told = []

def read_stream():
    while sum(told) < {2 * BLOCK_BYTES + 5}:
        try:
            told.append(len(os.read(connection.fileno(), {BLOCK_BYTES})))
        except BlockingIOError:
            pass

thread = threading.Thread(target=read_stream)
thread.start()
while thread.is_alive():
    libc.select(0, None, None, None, (ctypes.c_long * 2)(0, 1000))
print(told)
"""


def test_what_was_taken_is_told_when_the_main_thread_has_waited(library):
    """The connection stays open and silent: nothing else can make the reader tell."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(LIMIT_S)
        caller = subprocess.Popen(
            [sys.executable, "-c", CALLER, str(listener.getsockname()[1])],
            env=os.environ | {"LD_PRELOAD": str(library)},
            stdout=subprocess.PIPE,
        )
        connection, _ = listener.accept()
        with connection:
            connection.sendall(bytes(2 * BLOCK_BYTES + 5))
            out, _ = caller.communicate(timeout=LIMIT_S)
    assert sum(json.loads(out)) == 2 * BLOCK_BYTES + 5


ASKER = """
import ctypes, time
libc = ctypes.CDLL(None)
began = time.monotonic()
for _ in range(23):
    libc.select(0, None, None, None, (ctypes.c_long * 2)(0, 0))
print(time.monotonic() - began)
"""


@pytest.mark.parametrize(
    ("version", "defined"),
    [("3.18-2+deb13u2", True), ("3.20-2", True), ("3.22-0.1", False), ("3.100", False)],
)
def test_an_iperf3_that_asks_without_end_has_to_wait_between_two_answers(
    version, defined, tmp_path, monkeypatch
):
    """A full queue of 1 Mbit/s outlived the flow of an iperf3 3.20, which asked on and on."""
    monkeypatch.setattr(Root, "__init__", lambda *_: None)
    root = Root()
    root._stage, root._packages = tmp_path, [types.SimpleNamespace(name="iperf3", version=version)]
    root._compile_wakeups()
    preloaded = os.environ | {"LD_PRELOAD": str(tmp_path / WAKEUPS_LIBRARY.lstrip("/"))}
    asked = (sys.executable, "-c", ASKER)
    took = [
        float(subprocess.run(asked, env=preloaded, capture_output=True, check=True, timeout=LIMIT_S).stdout)
        for _ in range(5)
    ]
    # Three may find nothing at once, and each of the twenty after them sleeps for a millisecond at least.
    assert (min(took) >= 0.020) == defined
