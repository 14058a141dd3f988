"""The role where nothing works: each way says why it does not, and the machine stays as it was.

It runs over Ansible's local connection inside namespaces of its own: no network, every folder that it could
write to laid over with memory, loading of modules switched off, and without the rights that BPF needs.
"""

import re
from pathlib import Path

import confined

CLOSED = r"""
if [ -e /proc/modules ]; then
	echo 1 >"$1/disabled"
	mount --bind "$1/disabled" /proc/sys/kernel/modules_disabled
fi
# Congestion controls belong to the whole kernel: what others registered meanwhile is out of sight.
echo reno cubic bbr >"$1/offered"
mount --bind "$1/offered" /proc/sys/net/ipv4/tcp_available_congestion_control
"""
WITHOUT_RIGHTS = ("setpriv", "--bounding-set", "-bpf,-sys_admin,-sys_module")


def play(tmp_path, *arguments):
    room = tmp_path / "room"
    room.mkdir()
    user = () if Path("/proc/self").owner() == "root" else ("--user", "--map-root-user")
    script = confined.LAY_OVER + CLOSED + confined.PLAY
    inside = ("unshare", "--mount", "--net", *user, "sh", "-c", script, "sh", room, *WITHOUT_RIGHTS)
    played = confined.play(inside, tmp_path / "hosts.ini", *arguments)
    return played.status, played.changed, played.output


def test_where_no_way_works_each_is_named_with_its_reason_in_the_order_of_trying(tmp_path):
    status, _, said = play(tmp_path)
    assert status != 0
    refusal = re.search(r"This node cannot offer fab_bbr2 and fab_bbr3\. Ways tried: (.*?)\"", said)
    assert refusal, said
    ways = [way.partition(": ") for way in refusal[1].split(" | ")]
    assert [name for name, _, _ in ways] == ["dkms", "make", "bpf"]
    for name, _, reason in ways[:2]:
        assert re.search("without loadable modules|kernel.modules_disabled", reason), (name, reason)
    assert ways[2][2].strip()


def test_a_way_that_is_asked_for_is_the_only_one_tried(tmp_path):
    status, _, said = play(tmp_path, "-e", "bbr_way=make")
    assert status != 0
    assert "Ways tried: make: " in said
    assert "bpf: " not in said


def test_an_option_that_does_not_exist_is_refused_before_anything_is_done(tmp_path):
    status, _, said = play(tmp_path, "-e", "bbr_way=magic")
    assert status != 0
    assert "value of bbr_way must be one of: auto, dkms, make, bpf, got: magic" in said
    assert "TASK [bbr : Survey the node]" not in said


def test_removing_what_was_never_there_changes_nothing(tmp_path):
    status, changed, said = play(tmp_path, "-e", "bbr_state=absent")
    assert (status, changed) == (0, 0), said
