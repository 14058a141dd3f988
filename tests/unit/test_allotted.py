"""How many CPUs a container may use at once, though it sees all of its machine."""

import os

import pytest

from fabbbr.backends import allotted
from fabbbr.backends.allotted import cpus_at_once

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


@pytest.mark.parametrize("place", PLACES)
def test_no_more_at_once_than_the_quota_is_worth(tmp_path, monkeypatch, place):
    groups, mounts, files, at_once = PLACES[place]
    of_process = tmp_path / "proc" / "self"
    of_process.mkdir(parents=True)
    (of_process / "cgroup").write_text(groups)
    (of_process / "mountinfo").write_text(mounts.format(at=tmp_path))
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(allotted, "usable_cpus", lambda: [0, 2, 4, 6])
    assert cpus_at_once(tmp_path / "proc") == at_once


def test_where_nothing_can_be_read_all_usable_cpus_count(tmp_path):
    assert cpus_at_once(tmp_path) == len(os.sched_getaffinity(0))
