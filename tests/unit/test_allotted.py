"""How many CPUs and how much memory a container may use, though it sees all of its machine."""

import os

import pytest

from fabbbr.backends import allotted
from fabbbr.backends.allotted import cpus_at_once, free_memory_bytes, processes_at_once

# What processes of containers read of themselves: groups, mounts (below {at}), files of the controller.
PLACES = {
    "docker --cpus=2, version 2": (
        "0::/\n",
        "570 569 0:27 / {at}/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n",
        {"cgroup/cpu.max": "200000 100000\n"},
        2,
    ),
    "docker --cpus=1.5, version 1": (
        "12:memory:/docker/5f0a\n4:cpu,cpuacct:/docker/5f0a\n0::/docker/5f0a\n",
        (
            "601 590 0:30 /docker/5f0a {at}/memory ro,nosuid master:11 - cgroup cgroup rw,memory\n"
            "602 590 0:31 /docker/5f0a {at}/cpu ro,nosuid master:12 - cgroup cgroup rw,cpu,cpuacct\n"
        ),
        {"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "100000\n"},
        2,
    ),
    "a pod with a limit around its container": (
        "0::/kubepods.slice/pod7/8c31\n",
        "33 24 0:28 / {at}/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
        {
            "cgroup/kubepods.slice/cpu.max": "6400000 100000\n",
            "cgroup/kubepods.slice/pod7/cpu.max": "300000 100000\n",
            "cgroup/kubepods.slice/pod7/8c31/cpu.max": "max 100000\n",
        },
        3,
    ),
    "a folder with a blank": (
        "0::/\n",
        "33 24 0:28 / {at}/my\\040groups rw - cgroup2 cgroup2 rw\n",
        {"my groups/cpu.max": "100000 100000\n"},
        1,
    ),
    "a tenth of a CPU": (
        "0::/small\n",
        "33 24 0:28 /small {at}/cgroup rw - cgroup2 cgroup2 rw\n",
        {"cgroup/cpu.max": "10000 100000\n"},
        1,
    ),
    "a group that another container sees": (
        "0::/../5f0a\n",
        "570 569 0:27 /5f0a {at}/cgroup rw - cgroup2 cgroup rw\n",
        {"cgroup/cpu.max": "200000 100000\n"},
        2,
    ),
    "no limit, version 2": ("0::/\n", "33 24 0:28 / {at}/cgroup rw - cgroup2 cgroup2 rw\n", {}, 4),
    "no limit, version 1": (
        "1:cpu:/\n",
        "32 31 0:29 / {at}/cpu rw,relatime - cgroup cgroup rw,cpu\n",
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
        4,
    ),
    "more than there are": (
        "0::/\n",
        "33 24 0:28 / {at}/cgroup rw - cgroup2 cgroup2 rw\n",
        {"cgroup/cpu.max": "900000 100000\n"},
        4,
    ),
    "no control groups": ("", "", {}, 4),
}


def laid_out(at, groups, mounts, files):
    """The folder that a process there has for /proc."""
    of_process = at / "proc" / "self"
    of_process.mkdir(parents=True)
    (of_process / "cgroup").write_text(groups)
    (of_process / "mountinfo").write_text(mounts.format(at=at))
    for name, text in files.items():
        file = at / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return at / "proc"


@pytest.mark.parametrize("place", PLACES)
def test_no_more_at_once_than_the_quota_is_worth(tmp_path, monkeypatch, place):
    *made, at_once = PLACES[place]
    monkeypatch.setattr(allotted, "usable_cpus", lambda: [0, 2, 4, 6])
    assert cpus_at_once(laid_out(tmp_path, *made)) == at_once


def test_where_nothing_can_be_read_all_usable_cpus_count(tmp_path):
    assert cpus_at_once(tmp_path) == len(os.sched_getaffinity(0))


V2 = "33 24 0:28 / {at}/cgroup rw - cgroup2 cgroup2 rw\n"
V1 = "33 24 0:28 / {at}/memory rw - cgroup cgroup rw,memory\n"
NO_LIMIT = "9223372036854771712\n"
MB = 1_000_000
# As above: groups, mounts, files; what may still be taken, of 8 GB that the machine has.
ROOMS = {
    "docker --memory=2g, version 2": (
        "0::/\n", V2,
        {
            "cgroup/memory.max": f"{2000 * MB}\n", "cgroup/memory.high": "max\n",
            "cgroup/memory.current": f"{900 * MB}\n",
            "cgroup/memory.stat": f"anon {300 * MB}\n\nodd\ninactive_file {400 * MB}\nactive_file {MB}\n",
        },
        1501 * MB,
    ),
    "docker --memory=2g, version 1": (
        "12:memory:/docker/5f0a\n4:cpu,cpuacct:/docker/5f0a\n0::/docker/5f0a\n",
        "601 590 0:30 /docker/5f0a {at}/memory ro,nosuid master:11 - cgroup cgroup rw,memory\n",
        {
            "memory/memory.limit_in_bytes": f"{2000 * MB}\n",
            "memory/memory.usage_in_bytes": f"{1500 * MB}\n",
            "memory/memory.stat": (
                f"inactive_file {MB}\nactive_file {MB}\ntotal_inactive_file {90 * MB}\n"
                f"total_active_file {10 * MB}\n"
            ),
        },
        600 * MB,
    ),
    "a pod whose neighbours took most of it": (
        "0::/pods/pod7/8c31\n", V2,
        {
            "cgroup/pods/memory.max": "max\n", "cgroup/pods/memory.current": f"{7000 * MB}\n",
            "cgroup/pods/pod7/memory.max": f"{1000 * MB}\n",
            "cgroup/pods/pod7/memory.current": f"{800 * MB}\n",
            "cgroup/pods/pod7/8c31/memory.max": f"{900 * MB}\n",
            "cgroup/pods/pod7/8c31/memory.current": f"{300 * MB}\n",
        },
        200 * MB,
    ),
    "slowed down before it is full": (
        "0::/\n", V2,
        {
            "cgroup/memory.max": f"{2000 * MB}\n", "cgroup/memory.high": f"{500 * MB}\n",
            "cgroup/memory.current": f"{100 * MB}\n",
        },
        400 * MB,
    ),
    "more taken than the limit that came later": (
        "0::/\n", V2,
        {"cgroup/memory.max": f"{500 * MB}\n", "cgroup/memory.current": f"{600 * MB}\n"},
        0,
    ),
    "more than there is": (
        "0::/\n", V2,
        {"cgroup/memory.max": f"{64_000 * MB}\n", "cgroup/memory.current": f"{600 * MB}\n"},
        8000 * MB,
    ),
    "no limit, version 2": (
        "0::/\n", V2, {"cgroup/memory.max": "max\n", "cgroup/memory.current": "9\n"}, 8000 * MB
    ),
    "no limit, version 1": (
        "1:memory:/\n", V1,
        {"memory/memory.limit_in_bytes": NO_LIMIT, "memory/memory.usage_in_bytes": "9\n"},
        8000 * MB,
    ),
    "a group of CPUs alone": (
        "4:cpu:/a\n", "33 24 0:28 / {at}/memory rw - cgroup cgroup rw,cpu\n",
        {"memory/a/memory.limit_in_bytes": "1\n", "memory/a/memory.usage_in_bytes": "0\n"},
        8000 * MB,
    ),
    "no control groups": ("", "", {}, 8000 * MB),
}  # fmt: skip


@pytest.mark.parametrize("place", ROOMS)
def test_memory_is_what_every_group_around_has_left(tmp_path, monkeypatch, place):
    *made, free = ROOMS[place]
    proc = laid_out(tmp_path, *made)
    (proc / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 7812500 kB\nBuffers: 1 kB\n")
    assert free_memory_bytes(proc) == free
    monkeypatch.setattr(allotted, "usable_cpus", lambda: [0, 2, 4, 6])
    assert processes_at_once(150 * MB, proc) == min(4, max(1, free // (150 * MB)))


def test_where_nothing_can_be_read_memory_limits_nothing(tmp_path):
    assert processes_at_once(1 << 40, tmp_path) == len(os.sched_getaffinity(0))
