"""A kernel module of one's own where the role bbr went by DKMS: what DKMS makes of it, and what it keeps.

The fixtures are the days in a machine's life, each going on from the one before: the role, the module built,
its flow, the end.
"""

import pytest
from qemu.observe import complaints, offered, sockets
from qemu.own import AIMD, brought, loaded

KEPT = "sudo find /var/lib/dkms /lib/modules /usr/src -name '*aimd*' -o -name '*fab_own*'"


@pytest.fixture(scope="module")
def ground(machine):
    played = machine.play("-e", "bbr_way=dkms")
    assert played.status == 0, played.output
    return machine.says("sudo dkms status")


@pytest.fixture(scope="module")
def built(channel, ground):
    return brought(channel)


@pytest.fixture(scope="module")
def flow(machine, channel, built):
    shown = loaded(machine, channel, "512")
    return shown, sockets(machine, "aimd")["aimd"]


@pytest.fixture(scope="module")
def ended(machine, built, flow):
    built[0].close()
    return machine.says(f"sudo ls -A /run/fab_loaded; lsmod; {KEPT}")


def test_dkms_builds_it_and_signs_it_as_it_does_the_module_of_the_role(machine, built):
    _, (told,), made = built
    assert made["built_by"] == f"dkms-{machine.says('sudo dkms --version').removeprefix('dkms-')}"
    signer = machine.says("sudo modinfo -F signer fab_bbr")
    assert made.get("signer", "") == signer
    signed = f", signed by {signer}" if signer else ""
    release = machine.says("uname -r")
    assert f"built tcp_aimd of {AIMD} for Linux {release} by {made['built_by']}{signed} and loaded it" in told


def test_what_dkms_built_is_what_runs(built, flow):
    shown, said = flow
    assert shown["file_sha256"] == built[2]["sha256"]
    assert " aimd " in f" {said} "


def test_dkms_keeps_the_role_s_module_and_nothing_of_this_one(machine, ground, ended):
    assert "aimd" not in ended
    assert "fab_own" not in ended
    assert "aimd" not in offered(machine)
    assert "installed" in ground
    assert machine.says("sudo dkms status") == ground


def test_the_kernel_complained_about_nothing(machine, ended):
    assert complaints(machine) == []
