"""The role on a whole machine: DKMS builds against the distribution's headers; the result carries flows.

The fixtures are the days in a node's life, each going on from the one before: a dry run, the first run, the
second, a boot, another profile, other sources, the end.
"""

import re
import shutil

import pytest
from qemu.observe import SIGHT, TRACES, complaints, digest, offered, parameter, sockets

LATER = "9.9.9"


@pytest.fixture(scope="module")
def dry_run(machine):
    before = machine.says(SIGHT)
    return machine.play("--check"), before, machine.says(SIGHT)


@pytest.fixture(scope="module")
def first_run(machine, dry_run):
    return machine.play()


@pytest.fixture(scope="module")
def second_run(machine, first_run):
    return machine.play()


@pytest.fixture(scope="module")
def rebooted(machine, second_run):
    machine.reboot()


@pytest.fixture(scope="module")
def other_profile(machine, rebooted):
    return machine.play("-e", "bbr_profile=draft01")


@pytest.fixture(scope="module")
def other_sources(machine, other_profile, tmp_path_factory):
    """The role of another release: the same but for a comment in its core and its version."""
    release = tmp_path_factory.mktemp("release") / "playbooks"
    shutil.copytree(machine.playbooks, release)
    files = release / "roles" / "bbr" / "files"
    with (files / "fab_bbr_core.c").open("a", encoding="ascii") as core:
        core.write("/* another release */\n")
    conf = files / "dkms.conf"
    conf.write_text(
        re.sub(r'(?<=PACKAGE_VERSION=").*(?=")', LATER, conf.read_text(encoding="ascii")), encoding="ascii"
    )
    return machine.play("-e", "bbr_profile=draft01", playbooks=release), digest(files)


@pytest.fixture(scope="module")
def removed(machine, other_sources):
    return machine.play("-e", "bbr_state=absent"), machine.says("lsmod"), machine.says(TRACES)


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(dry_run):
    played, before, after = dry_run
    assert played.status == 0, played.output
    assert played.changed > 0
    assert after == before


def test_the_first_run_succeeds(first_run):
    assert first_run.status == 0, first_run.output
    assert '"fab_bbr_way": "dkms"' in first_run.output


def test_dkms_built_the_module_for_the_running_kernel(machine, first_run):
    release = machine.says("uname -r")
    assert f"{release}, x86_64: installed" in machine.says("sudo dkms status fab_bbr")
    assert f"/{release}/" in machine.says("sudo modinfo -n fab_bbr")


def test_the_module_that_runs_is_of_these_sources(machine, first_run):
    assert parameter(machine, "source") == digest(machine.playbooks / "roles" / "bbr" / "files")


def test_an_ordinary_users_flow_is_carried_by_the_algorithm_that_it_chose(machine, first_run):
    assert {"bbr", "fab_bbr2", "fab_bbr3"} <= offered(machine)
    said = sockets(machine, "bbr", "fab_bbr2", "fab_bbr3")
    for name, line in said.items():
        assert f" {name} " in line
        assert "bbr:(bw:" in line


def test_a_second_run_changes_nothing(second_run):
    assert (second_run.status, second_run.changed) == (0, 0), second_run.output


def test_a_boot_brings_them_back(machine, rebooted):
    assert {"bbr", "fab_bbr2", "fab_bbr3"} <= offered(machine)
    assert parameter(machine, "profile") == "v2alpha"


def test_another_profile_holds_at_once_and_needs_no_other_build(machine, other_profile):
    assert other_profile.status == 0, other_profile.output
    assert other_profile.changed == 2, "the option file and the parameter"


def test_other_sources_replace_those_in_force_and_keep_the_profile(machine, other_sources):
    played, wanted = other_sources
    assert played.status == 0, played.output
    assert parameter(machine, "source") == wanted
    assert parameter(machine, "profile") == "draft01"
    assert machine.says("ls -d /usr/src/fab_bbr-*") == f"/usr/src/fab_bbr-{LATER}"
    assert LATER in machine.says("sudo dkms status fab_bbr").split("\n")[-1]


def test_removal_leaves_nothing(removed):
    played, modules, traces = removed
    assert played.status == 0, played.output
    assert "fab_bbr" not in modules
    assert traces == ""


def test_a_second_removal_changes_nothing(machine, removed):
    again = machine.play("-e", "bbr_state=absent")
    assert (again.status, again.changed) == (0, 0), again.output


def test_the_kernel_complained_about_nothing(machine, removed):
    assert complaints(machine) == []
