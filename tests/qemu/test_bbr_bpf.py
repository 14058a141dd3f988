"""The role on a machine that takes no modules: BPF programs, and a module when it takes them again."""

import pytest
from qemu.distributions import DISTRIBUTIONS, TESTED, image
from qemu.observe import TRACES, complaints, offered, sockets

OURS = {"fab_bbr2", "fab_bbr3"}


@pytest.fixture(scope="module", params=[name for name in TESTED if DISTRIBUTIONS[name].bpf])
def distribution(request):
    """The disk of one distribution whose kernel can."""
    return image(DISTRIBUTIONS[request.param])


@pytest.fixture(scope="module")
def machine_without_modules(machine):
    # What the kernel would otherwise load on demand: its own bbr, and what ss looks through.
    machine.says("sudo modprobe --all tcp_bbr tcp_diag && sudo sysctl -w kernel.modules_disabled=1")
    return machine


@pytest.fixture(scope="module")
def first_run(machine_without_modules):
    return machine_without_modules.play()


@pytest.fixture(scope="module")
def rebooted(machine, first_run):
    machine.reboot()


@pytest.fixture(scope="module")
def second_run(machine, rebooted):
    return machine.play()


@pytest.fixture(scope="module")
def as_module(machine, second_run):
    return machine.play("-e", "bbr_way=dkms")


@pytest.fixture(scope="module")
def removed(machine, as_module):
    return machine.play("-e", "bbr_state=absent")


def test_a_node_that_takes_no_modules_gets_bpf_programs(machine, first_run):
    assert first_run.status == 0, first_run.output
    assert '"fab_bbr_way": "bpf"' in first_run.output
    assert offered(machine) >= OURS
    assert "fab_bbr" not in machine.says("cat /proc/modules")


def test_an_ordinary_users_flow_is_carried_by_them(machine, first_run):
    for name, line in sockets(machine, *sorted(OURS)).items():
        assert f" {name} " in line


def test_a_boot_brings_them_back(machine, rebooted):
    assert offered(machine) >= OURS
    assert machine.says("sudo fab-bbr-bpf profile") == "v2alpha"


def test_a_second_run_keeps_them_although_modules_may_be_loaded_again(second_run):
    assert (second_run.status, second_run.changed) == (0, 0), second_run.output
    assert '"fab_bbr_way": "bpf"' in second_run.output


def test_a_module_that_is_asked_for_takes_their_place(machine, as_module):
    assert as_module.status == 0, as_module.output
    assert offered(machine) >= OURS
    assert "fab_bbr" in machine.says("cat /proc/modules")
    assert machine.says("sudo ls /sys/fs/bpf") == ""


def test_removal_leaves_nothing(machine, removed):
    assert removed.status == 0, removed.output
    assert not offered(machine) & OURS
    assert machine.says(TRACES) == ""
    assert complaints(machine) == []
