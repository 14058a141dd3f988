"""Ansible prepares the machines of a slice, each in its own name space, and its words say what failed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from name_spaces import cannot, reserved

from fabbbr import bundled
from fabbbr.backends.namespaces import NamespaceProvider
from fabbbr.errors import BackendError, EnvironmentUnfitError
from fabbbr.reserve.inventory import inventory
from fabbbr.slice.prepare import prepare

PLAYBOOK = """
- name: Look around
  hosts: tcp_hosts
  gather_facts: false
  tasks:
    - name: Note which interfaces there are
      ansible.builtin.shell: ip -br link | cut -d' ' -f1 >{{ where }}/{{ inventory_hostname }}
      changed_when: false
    - name: Put a file
      ansible.builtin.copy:
        dest: "{{ where }}/{{ inventory_hostname }}.mac"
        content: "{{ fabbbr_interfaces | map(attribute='mac') | join(' ') }}"
        mode: "0600"
"""
FAILS = """
- name: Fail
  hosts: software_switches
  gather_facts: false
  tasks:
    - name: Look for what is not there
      ansible.builtin.command: cat /nonexistent/thing
      changed_when: false
"""


def needs_ansible():
    return "" if Path(sys.executable).with_name("ansible-playbook").exists() else "Ansible is not installed"


pytestmark = [
    pytest.mark.skipif(bool(cannot() or needs_ansible()), reason=cannot() or needs_ansible() or "it can"),
    pytest.mark.xdist_group("name spaces"),
]


@pytest.fixture
def hosts(name, kept):
    reservation, topology = reserved(name)
    provider = NamespaceProvider()
    live = provider.submit(reservation)
    ways = {machine.name: provider.ansible(machine) for machine in live.machines}
    yield inventory(reservation, live, topology, ways)
    provider.delete(live)


def played(text, tmp_path):
    folder = tmp_path / "playbooks"
    shutil.copytree(bundled.folder("playbooks") / "connection_plugins", folder / "connection_plugins")
    file = folder / "play.yml"
    file.write_text(text)
    return file


def test_tasks_run_in_each_name_space_with_its_variables(hosts, tmp_path):
    for member in hosts["all"]["children"]["fabbbr"]["children"]["tcp_hosts"]["hosts"].values():
        member["where"] = str(tmp_path)
    said = []
    prepare(hosts, said.append, playbook=played(PLAYBOOK, tmp_path))
    assert (tmp_path / "h1").read_text().split() == ["lo", "d-access@if3"] or "d-access" in (
        tmp_path / "h1"
    ).read_text()
    assert "d-trunk" in (tmp_path / "h2").read_text()
    assert (tmp_path / "h2.mac").read_text().startswith("02:")
    assert "TASK [Put a file]" in said


def test_a_task_that_fails_is_an_error_in_ansible_s_words(hosts, tmp_path):
    with pytest.raises(BackendError, match=r"fatal: \[sw\].*No such file.*--skip-prepare"):
        prepare(hosts, lambda _: None, playbook=played(FAILS, tmp_path))


def test_a_play_whose_hosts_are_not_there_is_no_success(hosts, tmp_path):
    with pytest.raises(BackendError, match="Could not match supplied host pattern"):
        prepare(
            hosts, lambda _: None, playbook=played(FAILS.replace("software_switches", "nobody"), tmp_path)
        )


def test_without_ansible_the_remedy_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentUnfitError, match="--skip-prepare"):
        prepare({}, lambda _: None)


def test_the_inventory_is_what_ansible_understands(hosts, tmp_path):
    file = tmp_path / "inventory.json"
    file.write_text(json.dumps(hosts))
    program = Path(sys.executable).with_name("ansible-inventory")
    told = json.loads(subprocess.run((program, "-i", file, "--list"), check=True, capture_output=True).stdout)
    assert sorted(told["tcp_hosts"]["hosts"]) == ["h1", "h2"]
    assert told["_meta"]["hostvars"]["h1"]["fabbbr_nodes"] == ["h1"]
