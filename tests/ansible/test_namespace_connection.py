"""The connection to a name space: by name, by process, why it is not made; a newer iperf3 built on a node."""

import subprocess
import tarfile

import pytest
from rooms import PLAYBOOKS, PYTHON, Played, inventory, room, two_hosts_and_a_switch

FILES = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Put
      ansible.builtin.copy: {content: "put", dest: "{{ there }}", mode: "0600"}
    - name: Fetch
      ansible.builtin.fetch: {src: "{{ there }}", dest: "{{ here }}", flat: true}
    - name: Interfaces
      ansible.builtin.command: {argv: [ls, /sys/class/net]}
      changed_when: false
"""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with room(tmp_path_factory.mktemp("room")) as made:
        two_hosts_and_a_switch(made)
        made.environment["ANSIBLE_CONNECTION_PLUGINS"] = str(PLAYBOOKS / "connection_plugins")
        yield made


def play(nodes, **node) -> Played:
    """Put, fetch and look, on one node that is reached so."""
    file = nodes.folder.with_name("files.yml")
    file.write_text(FILES, encoding="utf-8")
    shared = {"ansible_connection": "fabbbr_namespace", "ansible_python_interpreter": PYTHON}
    hosts = {"all": {"hosts": {"n": {**shared, **node}}}}
    there, here = nodes.folder / "there", nodes.folder / "here"
    nodes.says("rm", "-f", there, here)
    return nodes.play(file, hosts, there=str(there), here=str(here))


@pytest.mark.parametrize("pipelining", ["0", "1"])
def test_a_name_space_by_its_name(nodes, pipelining):
    nodes.environment["ANSIBLE_PIPELINING"] = pipelining
    played = play(nodes, fabbbr_namespace="h1")
    assert played.status == 0, played.output
    assert "h1-eth0\\nlo" in played.output
    assert nodes.says("cat", nodes.folder / "here") == "put"


def test_a_name_space_by_a_process_as_mininet_has_them(nodes):
    """A shell with network and mount name spaces of its own, in which /sys is that of its network."""
    script = "mount -t sysfs none /sys && ip link add only type veth peer name other"
    script += " && echo ready && exec sleep 300"
    holder = subprocess.Popen(
        (*nodes._enter, "unshare", "--net", "--mount", "sh", "-c", script), stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "ready\n"
        played = play(nodes, fabbbr_pid=holder.pid)
        assert played.status == 0, played.output
        assert "lo\\nonly\\nother" in played.output
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"fabbbr_namespace": "nowhere"}, "there is no network name space nowhere"),
        ({"fabbbr_pid": 4194304}, "process 4194304 has ended"),
        ({}, "set either fabbbr_namespace"),
        ({"fabbbr_namespace": "h1", "fabbbr_pid": 1}, "set either fabbbr_namespace"),
    ],
)
def test_a_node_that_cannot_be_reached_is_said_with_the_remedy(nodes, node, said):
    played = play(nodes, **node)
    assert played.status != 0
    assert said in played.output


IPERF3 = '#!/bin/sh\necho "iperf {release} (made up)"\n'
CONFIGURE = r"""#!/bin/sh
bin=${1#--prefix=}/bin
printf 'install:
	cp iperf3 %s/iperf3
uninstall:
	rm %s/iperf3
' "$bin" "$bin" >Makefile
"""


def test_an_older_iperf3_is_joined_by_a_newer_one_once_and_it_goes_again(nodes, tmp_path):
    source = tmp_path / "iperf-3.18"
    source.mkdir()
    for name, text in (("configure", CONFIGURE), ("iperf3", IPERF3.format(release="3.18"))):
        (source / name).write_text(text)
        (source / name).chmod(0o755)
    with tarfile.open(tmp_path / "iperf.tar.gz", "w:gz") as archive:
        archive.add(source, "iperf-3.18")
    digest = subprocess.run(
        ("sha256sum", tmp_path / "iperf.tar.gz"), capture_output=True, text=True, check=True
    )
    nodes.says(
        "sh",
        "-c",
        f"printf '%s' '{IPERF3.format(release='3.9')}' >/usr/bin/iperf3; chmod 755 /usr/bin/iperf3",
    )
    hosts = {
        "tcp_host_iperf3_minimum": "3.16",
        "tcp_host_iperf3_url": f"file://{tmp_path}/iperf.tar.gz",
        "tcp_host_iperf3_checksum": "sha256:" + digest.stdout.split()[0],
    }
    asked = inventory(nodes.folder, hosts=hosts)
    first = nodes.play("prepare.yml", asked, "--limit", "h1")
    assert first.status == 0, first.output
    assert nodes.says("/usr/local/bin/iperf3") == "iperf 3.18 (made up)\n"
    assert '"iperf3": "iperf 3.18 (made up)"' in first.output
    second = nodes.play("prepare.yml", asked, "--limit", "h1")
    assert (second.status, second.changed) == (0, {"h1": 0}), second.output
    assert nodes.play("restore.yml", asked, "--limit", "h1").status == 0
    assert nodes.run("test", "-e", "/usr/local/bin/iperf3").returncode != 0
    wrong = inventory(nodes.folder, hosts={**hosts, "tcp_host_iperf3_checksum": "sha256:" + "0" * 64})
    refused = nodes.play("prepare.yml", wrong, "--limit", "h1")
    assert refused.status != 0
    assert nodes.run("test", "-e", "/usr/local/bin/iperf3").returncode != 0
