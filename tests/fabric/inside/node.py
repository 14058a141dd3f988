"""What a node is: its own name, files, processes and settings; what is the machine's it may only read."""

import time
from pathlib import Path

from fabrictestbed_extensions.fablib.fablib import FablibManager

fablib = FablibManager()
fablib.verify_and_configure()
fablib.save_config()
slice = fablib.new_slice(name="node")
slice.add_node(name="node1", site="TACC", image="default_ubuntu_22")
slice.submit(wait_interval=1)
node = fablib.get_slice("node").get_node("node1")


def run(command):
    output, error = node.execute(f"{command}; echo $?", quiet=True)
    *lines, status = output.splitlines()
    return int(status), "\n".join(lines), error


outer = Path("/proc/sys/kernel/hostname").read_text().strip()
assert run("hostname") == (0, "node1", "")
assert run("sudo hostnamectl set-hostname other; hostname; sudo true")[:2] == (0, "other")
assert run("sudo id -u") == (0, "0", ""), "sudo says nothing of hosts that it cannot resolve"
assert Path("/proc/sys/kernel/hostname").read_text().strip() == outer

# Files: the machine's programs, and nothing of its people.
assert run("ls /home /root 2>/dev/null")[1].split() == ["/home:", "ubuntu"]
assert run("sudo touch /usr/local/mine /etc/mine")[0] == 0
assert not Path("/etc/mine").exists()
assert not Path("/usr/local/mine").exists()
assert run("ls /dev/vda /dev/sda /dev/kmsg /dev/mem 2>/dev/null")[1] == ""
assert run("lsb=$(. /etc/os-release; echo $PRETTY_NAME); echo $lsb")[1].startswith("Ubuntu 22.04")

# Settings: those of the network are the node's own; others are the machine's.
assert run("sudo sysctl -qw net.ipv4.tcp_rmem='4096 131072 268435456'")[0] == 0
assert run("sudo sysctl -qw net.ipv4.ip_forward=1 && sysctl -n net.ipv4.ip_forward")[1] == "1"
assert run("sudo sysctl -qw net.core.rmem_max=536870912 net.core.default_qdisc=fq")[0] == 0
assert run("sysctl -n net.core.rmem_max net.core.default_qdisc")[1].split() == ["536870912", "fq"]
assert (
    run("sudo sysctl -w net.core.somaxconn=1234 && cat /proc/sys/net/core/somaxconn")[1].split()[-1] == "1234"
)
assert run("sudo sysctl -w vm.swappiness=1")[0] != 0
assert run("sudo sysctl -w kernel.panic=1")[0] != 0
assert run("sudo date -s 2001-01-01")[0] != 0

# Nobody is out there, and that is told at once.
begun = time.monotonic()
assert run("ping -c 1 -W 5 192.0.2.1")[0] != 0
assert run("getent hosts archive.ubuntu.com")[0] != 0
assert time.monotonic() - begun < 5

# A reboot from within.
node.execute("echo kept > mark; sudo reboot; sleep 5", quiet=True)
begun = time.monotonic()
while True:
    assert time.monotonic() - begun < 60
    try:
        assert run("cat mark") == (0, "kept", "")
        break
    except Exception:
        time.sleep(0.5)
assert run("ps -e | wc -l")[0] == 0
slice.delete()
