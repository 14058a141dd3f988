"""Any user may take a socket's congestion control away while others ask for it: the kernel must not mind.

The race lasts an hour on each distribution, or FABBBR_RACE_S seconds.
"""

import json
import logging
import os
import subprocess
from pathlib import Path

import pytest
from qemu.distributions import module
from qemu.machine import up
from qemu.observe import ROLE, complaints, offered

RACE_S = int(os.environ.get("FABBBR_RACE_S", "3600"))
PREPARING_S = 1200
CPUS = 3
ENOUGH = 1000
"""Of everything that races: a program that stood still would prove nothing."""


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """Linked statically: it runs on every distribution, as nobody."""
    made = tmp_path_factory.mktemp("race") / "race"
    source = Path(__file__).parent / "race.c"
    subprocess.run(
        ("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o", made, source), check=True
    )
    return made


@pytest.fixture(scope="module")
def machine(distribution, program, tmp_path_factory):
    built = module(distribution, ROLE / "files", tmp_path_factory.mktemp("module"))
    with up(distribution, cpus=CPUS, lifetime_s=PREPARING_S + RACE_S) as fresh:
        fresh.send(built, "/srv/fab_bbr.ko")
        fresh.send(program, "/usr/local/bin/race")
        # An oops ends the machine at once instead of some time later, with its words on the console.
        fresh.says("sudo sysctl -w kernel.panic_on_oops=1")
        fresh.says("sudo modprobe --all tcp_bbr tcp_diag && sudo insmod /srv/fab_bbr.ko")
        yield fresh


def test_changing_hands_under_readers_without_the_lock(machine):
    algorithms = ("fab_bbr2", "bbr", "fab_bbr3", "cubic", "fab_bbr1")
    assert {*algorithms} <= offered(machine)
    try:
        done = machine.run(
            f"sudo -u nobody race {RACE_S} {' '.join(algorithms)}", timeout_s=RACE_S + PREPARING_S / 2
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"the machine stood still; its console ends:\n{machine.console[-3000:]}")
    assert done.returncode == 0, f"{done.stderr}\n{machine.console[-3000:]}"
    counted = json.loads(done.stdout)
    logging.getLogger(__name__).info("raced: %s", done.stdout)
    assert all(count > ENOUGH for count in counted.values()), counted
    assert complaints(machine) == []


PAGES = """
import os, re, socket, sys

# The kernel adds up a megabyte on each CPU before it counts.
os.sched_setaffinity(0, {0})

def pages():
    text = open("/proc/net/sockstat").read()
    return int(re.search(r"^TCP: .* mem ([0-9]+)", text, re.M)[1])

before, held = pages(), []
with socket.create_server(("127.0.0.1", 0), backlog=8) as listener:
    for _ in range(400):
        end = socket.socket()
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
        end.connect(listener.getsockname())
        held += [end, listener.accept()[0]]
    print(pages() - before)
"""
"""Pages of TCP's memory that 400 idle connections take, whose senders have the
congestion control that is named."""


def test_a_connections_memory_counts_against_tcps(machine):
    def pages(algorithm: str) -> int:
        return int(machine.says(f"python3 - {algorithm} <<'SCRIPT'\n{PAGES}\nSCRIPT"))

    slots_bytes = 512 * 12
    assert pages("fab_bbr2") - pages("cubic") > 400 * slots_bytes / 4096 / 2


def test_nothing_of_them_is_left(machine):
    """No connection holds the module; a socket that kept a charge for memory would have warned in the log."""
    machine.says("for i in $(seq 50); do sudo rmmod fab_bbr && exit 0; sleep 0.2; done; exit 1")
    assert complaints(machine) == []
