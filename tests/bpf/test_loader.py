"""`fab-bbr-bpf` registers both algorithms or says why not, and leaves nothing behind."""

import shutil
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bpf.machine import SENDER_ADDRESS, loaded, number_in, offered, wait_until
from places import GUEST

from fabbbr.certify import controls
from fabbbr.certify.evidence import Answer
from fabbbr.job import congestion
from fabbbr.job.build import prepare
from fabbbr.plan.opening import open_plan

pytestmark = [pytest.mark.bpf, pytest.mark.xdist_group("bpf")]

NAMES = {"fab_bbr2", "fab_bbr3"}


@pytest.fixture(autouse=True)
def _nobody_else_has_loaded_ours():
    assert not NAMES & set(offered()), "this machine offers fab_bbr2 already: unload it before these tests"
    wait_until(
        lambda: not loaded(), limit_s=10
    )  # the kernel frees what the test before has unloaded a little later


def connect(cca):
    """A connection over loopback whose sender has ``cca``: it, and its peer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.socket()
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cca.encode())
        sender.connect(listener.getsockname())
        return sender, listener.accept()[0]


def test_both_are_offered_when_loaded_and_nothing_is_left_when_unloaded(loader):
    assert loader.done("load").startswith("registered: fab_bbr2 (profile v2alpha), fab_bbr3; source ")
    assert set(offered()) >= NAMES
    assert loader.done("status").startswith("registered")
    loader.done("unload")
    assert not NAMES & set(offered())
    wait_until(lambda: not loaded(), limit_s=10)
    left = loader("status", before="ls /run /sys/fs/bpf/fab* >&2")
    assert left.stdout == ""
    assert "fab-bbr" not in left.stderr


def test_users_without_privileges_may_choose_them(loader):
    loader.done("load")
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    assert set(allowed) >= NAMES


def test_the_source_that_status_tells_is_the_digest_of_what_was_compiled(loader, objects):
    loader.done("load")
    files = loader.script.parent
    sources = ("../fab_bbr_core.h", "../fab_bbr_core.c", "fab_app_mark.h", "fab_app_mark.c")
    sources += ("fab_bbr_bpf.h", "fab_conn.h", "fab_bbr.bpf.c")
    texts = b"".join((files / name).read_bytes() for name in sources)
    digest = subprocess.run(["sha256sum"], input=texts, capture_output=True, check=True).stdout[:16].decode()
    assert loader.done("status").split()[-1] == digest


def test_a_new_connection_follows_the_profile_of_its_time_and_keeps_it(loader):
    loader.done("load", "draft01")
    with_ends = [connect("fab_bbr2")]
    assert loader.done("profile", "v2alpha") == "v2alpha\n"
    with_ends += [connect("fab_bbr2"), connect("fab_bbr3")]
    assert loader.done("profile") == "v2alpha\n"
    lines = loader.done("connections").splitlines()
    profiles = {entry["local"]: entry["profile"] for entry in loader.connections()}
    found = [profiles[f"127.0.0.1:{sender.getsockname()[1]}"] for sender, _ in with_ends]
    for ends in with_ends:
        for end in ends:
            end.close()
    assert found == ["draft01", "v2alpha", "v3"]
    assert {line.split()[0] for line in lines} == set(profiles)


def test_open_connections_keep_theirs_after_unloading_and_it_goes_when_they_close(loader):
    loader.done("load")
    sender, receiver = connect("fab_bbr2")
    with sender, receiver:
        loader.done("unload")
        assert not NAMES & set(offered())
        assert sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).startswith(b"fab_bbr2\0")
        with socket.socket() as late, pytest.raises(FileNotFoundError):
            late.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"fab_bbr2")
        loader.done("load", "draft01")
        newer, its_peer = connect("fab_bbr2")
        with newer, its_peer:
            locals_ = {entry["local"]: entry["profile"] for entry in loader.connections()}
            assert locals_[f"127.0.0.1:{newer.getsockname()[1]}"] == "draft01"
            sender.sendall(b"x" * 1000)
            assert receiver.recv(1000, socket.MSG_WAITALL) == b"x" * 1000
        loader.done("unload")
    wait_until(lambda: not loaded(), limit_s=10)


def refused(answer, status, *words):
    assert answer.returncode == status, answer.stderr
    for word in words:
        assert word in answer.stderr
    assert not NAMES & set(offered())


def test_wrong_usage_is_explained(loader):
    refused(loader(), 2, "usage: fab-bbr-bpf load")
    refused(loader("load", "v3"), 2, "no profile 'v3'", "v2alpha or draft01")


def test_loading_twice_is_refused_and_changes_nothing(loader):
    first = loader.done("load", "draft01")
    answer = loader("load")
    assert answer.returncode == 1
    assert "already registered: fab-bbr-bpf unload comes first" in answer.stderr
    assert loader.done("status") == first


def test_of_loads_at_once_one_succeeds_and_the_others_say_why_not(loader):
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: loader("load"), range(4)))
    assert sorted(answer.returncode for answer in answers) == [0, 1, 1, 1]
    for answer in answers:
        assert answer.returncode == 0 or "already registered" in answer.stderr
    assert loader.done("status").startswith("registered")
    loader.done("unload")
    assert not NAMES & set(offered())


def test_loads_and_unloads_in_any_order_leave_it_loaded_or_not(loader):
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(loader, ["load", "unload"] * 6))
    assert {answer.returncode for answer in answers} <= {0, 1}
    assert len(NAMES & set(offered())) in {0, 2}
    loader("unload")
    assert loader("status").stdout == "not registered\n"
    loader.done("load")


CALLS_OF_LOAD = ("map create", "map update", "struct_ops register", "iter pin")


@pytest.mark.parametrize("verb", ["load", "unload"])
@pytest.mark.parametrize("call", CALLS_OF_LOAD)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_load_that_is_killed_is_cleared_away_by_what_comes_next(loader, tmp_path, call, moment, verb):
    """A stand-in for bpftool kills its whole process group, around each call that changes something."""
    fake = tmp_path / "bpftool"
    real = f'{shutil.which("bpftool")} "$@"'
    first = real if moment == "after" else ":"
    fake.write_text(f'#!/bin/sh\ncase "$*" in "{call}"*) {first}; kill -9 0 ;; esac\nexec {real}\n')
    fake.chmod(0o755)
    killed = loader("load", before=f"PATH={tmp_path}:$PATH")
    assert killed.returncode == -signal.SIGKILL
    assert loader("status").returncode == 3
    loader.done(verb)
    assert len(NAMES & set(offered())) == (2 if verb == "load" else 0)


def test_a_load_that_is_stopped_clears_up_after_itself(loader, tmp_path):
    fake = tmp_path / "bpftool"
    real = shutil.which("bpftool")
    fake.write_text(f'#!/bin/sh\n[ "$1" != iter ] || {{ kill -TERM $PPID; exit 0; }}\nexec {real} "$@"\n')
    fake.chmod(0o755)
    assert loader("load", before=f"PATH={tmp_path}:$PATH").returncode == 1
    assert loader("status").stdout == "not registered\n"
    wait_until(lambda: not loaded(), limit_s=10)


@pytest.mark.parametrize("umask", ["000", "022", "077"])
def test_what_it_keeps_in_run_is_for_all_to_read_and_for_root_to_write(loader, umask):
    assert loader("load", before=f"umask {umask}").returncode == 0
    modes = loader("status", before="stat -c %a /run/fab-bbr-bpf /run/fab-bbr-bpf/source >&2").stderr
    assert modes.split() == ["755", "644"]


def test_what_is_not_loaded_has_no_profile_and_no_connections(loader):
    for verb in ("profile", "connections"):
        refused(loader(verb), 3, "fab-bbr-bpf load comes first")
    assert loader("status").returncode == 3
    assert loader.done("unload") == "not registered\n"


def test_a_kernel_without_btf_is_sent_to_the_module(loader):
    refused(loader("load", before="mount -t tmpfs none /sys/kernel/btf"), 4, "has no BTF", "module fab_bbr")


def test_a_missing_object_is_named(loader):
    refused(
        loader("load", environment={"FAB_BBR_OBJECTS": "/nowhere"}), 1, "no /nowhere/fab_bbr_args", "make"
    )


def test_a_missing_bpftool_is_named(loader, tmp_path):
    for tool in ("sh", "id", "grep", "sed", "uname"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    refused(loader("load", before=f"PATH={tmp_path}"), 4, "bpftool is missing: install")


def test_a_user_without_root_is_told_so(loader):
    # Read from standard input: nobody may not look into every folder that a checkout can be in.
    command = ["setpriv", "--reuid=65534", "--clear-groups", "sh", "-s", "load"]
    with loader.script.open("rb") as script:
        answer = subprocess.run(command, stdin=script, cwd="/", capture_output=True, text=True, check=False)
    refused(answer, 4, "needs root")


def test_a_process_without_the_capabilities_is_told_so(loader):
    before = 'exec setpriv --bounding-set=-all --inh-caps=-all "$0" "$@"'
    refused(loader("load", before=before), 4, "the kernel refuses BPF to this process")


REFUSALS = {
    "no write support to tcp_sock at off 576": "lets no BPF program set the pacing rate",
    (
        "libbpf: struct_ops init_kern: struct bpf_struct_ops_tcp_congestion_ops is not found in kernel BTF"
    ): "CONFIG_BPF_JIT",
    "something new": "bpftool could not make congestion controls",
}
"""What bpftool says on kernels that cannot: the first line is the verifier's
(net/ipv4/bpf_tcp_ca.c), the second libbpf's."""


@pytest.mark.parametrize("said", REFUSALS)
def test_the_refusal_of_an_older_kernel_is_explained_and_cleared_away(loader, tmp_path, said):
    """A stand-in for bpftool refuses to register, as it does on kernels that are not at hand here."""
    fake = tmp_path / "bpftool"
    real = shutil.which("bpftool")
    fake.write_text(
        f'#!/bin/sh\n[ "$1" != struct_ops ] || {{ echo "{said}" >&2; exit 255; }}\nexec {real} "$@"\n'
    )
    fake.chmod(0o755)
    refused(
        loader("load", before=f"PATH={tmp_path}:$PATH"), 1 if said == "something new" else 4, REFUSALS[said]
    )
    assert loader("status").returncode == 3
    wait_until(lambda: not loaded(), limit_s=10)


def test_a_kernel_that_refuses_the_list_alone_is_said_to_and_nothing_is_left(loader, tmp_path):
    """There are kernels that take a congestion control as BPF, but not every iterator."""
    fake = tmp_path / "bpftool"
    said = "libbpf: prog 'fab_bbr_state': BPF program load failed: Operation not permitted"
    real = shutil.which("bpftool")
    fake.write_text(f'#!/bin/sh\n[ "$1" != iter ] || {{ echo "{said}" >&2; exit 255; }}\nexec {real} "$@"\n')
    fake.chmod(0o755)
    answer = loader("load", before=f"PATH={tmp_path}:$PATH")
    refused(answer, 4, "the kernel refuses BPF to this process", "the list of connections")
    wait_until(lambda: not loaded(), limit_s=10)


def test_the_list_is_of_the_network_namespace_that_asks(loader, network):
    loader.done("load")
    with network.flow("fab_bbr2", duration_s=2) as sending:
        wait_until(lambda: number_in(network.socket() or "", "bytes_sent") > 100_000, limit_s=10)
        inside, outside = loader.connections(network.sender), loader.connections()
        sending.communicate(timeout=20)
    assert SENDER_ADDRESS in {entry["local"].split(":")[0] for entry in inside}
    assert SENDER_ADDRESS not in {entry["local"].split(":")[0] for entry in outside}


def test_an_experiment_sets_the_profile_and_knows_what_it_ran(loader, tmp_path):
    file = tmp_path / "made.yaml"
    flow = "{cca: bbr2, profile: draft01, duration: 10 s}"
    text = (
        f"id: made\ntitle: made\nslice: two_site\npath: {{rate: 9 Mbit/s, rtt: 9 ms}}\nflows: "
        f"[{flow}]\nrepeat: 1\n"
    )
    file.write_text(text, encoding="utf-8")
    cell = open_plan(str(file), seed=1).cells[0]
    loader.done("load", "v2alpha")

    for command in congestion.profile_commands(cell):
        assert loader.as_installed(command.argv).returncode == 0
    answers = {}
    for capture in congestion.captures(cell):
        done = loader.as_installed(capture.command.argv)
        answers[capture.name] = Answer(
            argv=capture.command.argv,
            node=capture.command.node,
            exit=done.returncode,
            stdout=done.stdout,
            stderr=done.stderr,
        )
    (found,) = controls.identified(prepare(cell, GUEST), answers)
    assert (found.form, found.profile) == ("bpf", "draft01")
    assert found.source == loader.done("status").split()[-1]
    assert all(check.passed for check in controls.checks(congestion.controls(cell), answers))
