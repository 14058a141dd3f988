"""The role where nothing works: each way says why it does not, and the machine stays as it was.

It runs over Ansible's local connection inside namespaces of its own: no network, every folder that it could
write to laid over with memory, loading of modules switched off, and without the rights that BPF needs.
"""

import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ANSIBLE = Path(sys.executable).parent / "ansible-playbook"

CONFINED = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs none "$1"
for folder in etc usr var; do
	mkdir -p "$1/$folder/upper" "$1/$folder/work"
	mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$1/$folder/upper,workdir=$1/$folder/work" "/$folder"
done
mount -t tmpfs none /run
if [ -e /proc/modules ]; then
	echo 1 >"$1/disabled"
	mount --bind "$1/disabled" /proc/sys/kernel/modules_disabled
fi
# Congestion controls belong to the whole kernel: what others registered meanwhile is out of sight.
echo reno cubic bbr >"$1/offered"
mount --bind "$1/offered" /proc/sys/net/ipv4/tcp_available_congestion_control
mkdir "$1/home"
export HOME="$1/home" ANSIBLE_LOCAL_TEMP="$1/ansible" ANSIBLE_REMOTE_TEMP="$1/remote" ANSIBLE_NOCOLOR=1
ip link set lo up
shift
exec setpriv --bounding-set -bpf,-sys_admin,-sys_module "$@"
"""  # noqa: E501


def play(tmp_path, *arguments):
    inventory = tmp_path / "hosts.ini"
    inventory.write_text(
        f"[hosts]\nnode ansible_connection=local ansible_python_interpreter={sys.executable}\n"
    )
    room = tmp_path / "room"
    room.mkdir()
    user = () if Path("/proc/self").owner() == "root" else ("--user", "--map-root-user")
    done = subprocess.run(
        ("unshare", "--mount", "--net", *user, "sh", "-c", CONFINED, "sh", room, ANSIBLE, "-i", inventory,
         REPOSITORY / "playbooks" / "prepare.yml", *arguments),
        capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_where_no_way_works_each_is_named_with_its_reason_in_the_order_of_trying(tmp_path):
    status, said = play(tmp_path)
    assert status != 0
    refusal = re.search(r"This node cannot offer fab_bbr2 and fab_bbr3\. Ways tried: (.*?)\"", said)
    assert refusal, said
    ways = [way.partition(": ") for way in refusal[1].split(" | ")]
    assert [name for name, _, _ in ways] == ["dkms", "make", "bpf"]
    for name, _, reason in ways[:2]:
        assert re.search("without loadable modules|kernel.modules_disabled", reason), (name, reason)
    assert ways[2][2].strip()


def test_a_way_that_is_asked_for_is_the_only_one_tried(tmp_path):
    status, said = play(tmp_path, "-e", "bbr_way=make")
    assert status != 0
    assert "Ways tried: make: " in said
    assert "bpf: " not in said


def test_an_option_that_does_not_exist_is_refused_before_anything_is_done(tmp_path):
    status, said = play(tmp_path, "-e", "bbr_way=magic")
    assert status != 0
    assert "value of bbr_way must be one of: auto, dkms, make, bpf, got: magic" in said
    assert "TASK [bbr : Survey the node]" not in said


def test_removing_what_was_never_there_changes_nothing(tmp_path):
    status, said = play(tmp_path, "-e", "bbr_state=absent")
    assert status == 0, said
    assert re.search(r"^node\s.*changed=0 ", said, re.MULTILINE), said
