"""The playbooks on a kernel with netem and fq: a guest, in which real Ansible prepares name spaces."""

import contextlib
import json
import re
import sys
import threading
from pathlib import Path

import pytest
from guest.cells import WALL_LIMIT_S
from guest.playbooks import PORTS, SETTINGS

from fabbbr.backends.guest.cpus import Cpus
from fabbbr.backends.guest.machine import Machine, Watch, boot
from fabbbr.backends.keeper import Keeper

pytestmark = pytest.mark.guest

REPOSITORY = Path(__file__).parents[2]
INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
export LIBMOUNT_FORCE_MOUNT2=always
mount -a -T "$FABBBR_RUNTIME/fstab"
mkdir -p /run/netns /var/tmp
ip link set lo up
cd /run/fabbbr/work || exit 1
exec </dev/null
export PYTHONPATH=/run/fabbbr/tests
timeout "$FABBBR_LIMIT" /run/fabbbr/environment/bin/python -m guest.playbooks /run/fabbbr/work
echo 0 > exit
sync
exec "$FABBBR_PYTHON" -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""


@pytest.fixture(scope="module")
def told(kernel, tmp_path_factory):
    """What came of it."""
    work = tmp_path_factory.mktemp("playbooks")
    (work / "raw").mkdir()
    init = work / "init.sh"
    init.write_text(INIT, encoding="utf-8")
    folders = {
        "environment": Path(sys.prefix),
        "tests": REPOSITORY / "tests",
        "playbooks": REPOSITORY / "playbooks",
    }
    machine = Machine(
        kernel=kernel.binary, seccomp=kernel.seccomp, seed=1, memory_bytes=1 << 30,
        clock_limit_s=1000, init=init, extra_mounts=folders,
    )  # fmt: skip
    watch = Watch(
        wall_limit_s=4 * WALL_LIMIT_S, stall_limit_s=4 * WALL_LIMIT_S,
        progress=lambda _: None, cancelled=threading.Event(),
    )  # fmt: skip
    with contextlib.closing(Keeper()) as keeper:
        boot(machine, work, watch, keeper, Cpus())
    found = json.loads((work / "told.json").read_text(encoding="utf-8"))
    assert "crash" not in found, found["crash"]
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_asked_for_is_in_force_the_first_time_and_no_change_the_second(told, name):
    one = told["ports"][name]
    assert (one["first"]["changed"], one["second"]["changed"]) == (True, False), one
    assert one["second"]["differences"] == []


def test_a_refusal_half_way_leaves_what_was_set_before(told):
    said = told["refused"]["said"]
    assert said["failed"]
    assert "300000000us" in said["msg"], said
    assert told["refused"]["verified"]["differences"] == []


def test_second_runs_change_nothing(told):
    for name in ("prepared again", "set again"):
        played = told["story"][name]
        assert played["status"] == 0, played["output"]
        assert set(played["changed"].values()) == {0}, played["output"]


def test_fq_stands_at_every_transmit_queue_and_conditions_at_the_ports(told):
    queues = told["story"]["in force"]
    assert [queue.split()[0] for queue in queues["h1 h1-eth0"]] == ["fq"]
    assert [queue.split()[0] for queue in queues["h1 h1-eth1"]] == ["mq", *["fq"] * 4]
    assert queues["s1 s1-eth1"] == ["netem 1:", "clsact ffff:"]
    assert queues["s1 s1-eth2"] == ["tbf 1:", "fq_codel 2:"]


def test_a_ping_takes_as_long_as_the_lines_in_its_way_and_no_longer(told):
    there_and_back_ms = (PORTS[0]["arriving_delay_s"] + PORTS[0]["delay_s"]) * 1e3
    (least_ms,) = re.findall(r"min/avg/max/mdev = ([\d.]+)/", told["story"]["ping"])
    assert float(least_ms) == pytest.approx(there_and_back_ms, abs=0.02)


def test_restoring_leaves_no_queue_that_was_not_there(told):
    assert told["story"]["restored"]["status"] == 0, told["story"]["restored"]["output"]
    assert told["story"]["after"] == told["story"]["before"]
