"""The private world: nobody gets out, nothing is left, and sandboxes side by side do not meet."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fabbbr.cli import main
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.sandbox import outside
from fabbbr.sandbox.settings import Settings

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def family(of: int) -> set[int]:
    """A process of this machine and all that come from it."""
    parents = {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found, before = {of}, set()
    while found != before:
        before, found = found, found | {pid for pid, parent in parents.items() if parent in found}
    return found


@pytest.mark.parametrize("status", [0, 7])
def test_status_of_the_command_is_the_sandbox_s(sandbox, status):
    assert sandbox(("sh", "-c", f"exit {status}")).status == status


def test_command_that_there_is_not_is_named(sandbox):
    outcome = sandbox(("no-such-program",))
    assert outcome.status == EnvironmentUnfitError.exit_status
    assert "cannot run no-such-program" in outcome.output


def test_world_has_fabric_s_names_and_no_way_out(sandbox):
    known = "orchestrator.fabric-testbed.net bastion.fabric-testbed.net"
    asked = f"getent hosts {known}; ip route get 1.1.1.1; ip route"
    outcome = sandbox(("sh", "-c", asked))
    assert "127.77.0.2" in outcome.output
    assert "198.18.0.2" in outcome.output
    assert "unreachable" in outcome.output
    assert "default" not in outcome.output


def test_nodes_are_reached_through_the_bastion_alone(sandbox):
    outcome = sandbox(("sh", "-c", "ip route get 198.19.0.20; ip -6 route get 2001:db8:fab::10; true"))
    assert outcome.output.count("unreachable") == 2


def test_services_of_the_machine_are_out_of_reach(sandbox):
    outcome = sandbox(("sh", "-c", "ls /run; find /run -type s"))
    assert sorted(outcome.output.split()) == ["fabbbr", "mount", "netns"]


def test_home_is_that_of_a_hub(sandbox):
    outcome = sandbox(
        ("sh", "-c", "cd; ls -A . work/fabric_config; stat -c %a .tokens.json; echo $FABRIC_PROJECT_ID")
    )
    assert outcome.output.split() == [
        *(".:", ".fabric", ".tokens.json", "work"),
        *("work/fabric_config:", "fabric_rc", "600", "11111111-2222-4333-8444-555555555555"),
    ]


def test_what_is_written_to_tmp_is_private_but_not_where_the_caller_works(sandbox, tmp_path):
    name = f"/tmp/fabbbr-{os.getpid()}"  # noqa: S108
    outcome = sandbox(("sh", "-c", f"touch {name} && ls {name} && echo kept > here.txt"))
    assert outcome.status == 0
    assert not Path(name).exists()
    assert (tmp_path / "here.txt").read_text() == "kept\n"


@ROOT
def test_world_with_a_way_out_is_refused(fablib):
    """Its hosts would have the names of the real ones: a mistake must not reach these."""
    made = "ip link add d0 type veth peer name d1; ip link set d0 up; "
    routed = "ip addr add 192.0.2.2/24 dev d0; ip route add default via 192.0.2.1 onlink dev d0; "
    inside = f"exec {sys.executable} -m fabbbr.sandbox.inside -- true"
    done = subprocess.run(
        ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
         made + routed + inside),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == EnvironmentUnfitError.exit_status
    assert "there is a default route (by d0)" in done.stderr


@pytest.mark.parametrize("on", ["guest", pytest.param("host", marks=ROOT)])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP])
def test_nothing_is_left_when_the_outer_process_is_killed(tmp_path, fablib, on, how):
    mounts, spaces = Path("/proc/mounts").read_text(), sorted(Path("/run").iterdir())
    started = subprocess.Popen(
        ("env", "--default-signal=HUP",  # nohup make test-fabric
         sys.executable, "-m", "fabbbr.cli", "sandbox", "--on", on, "--", "sh", "-c", "touch up; sleep 9999"),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd=tmp_path,
    )  # fmt: skip
    try:
        _wait_until((tmp_path / "up").exists, seconds=120)
        whole = family(started.pid)
        started.send_signal(how)
        started.wait(10)
        _wait_until(lambda: not any(_lives(pid) for pid in whole), seconds=10)
    finally:
        started.terminate()
    assert Path("/proc/mounts").read_text() == mounts
    assert sorted(Path("/run").iterdir()) == spaces


def _wait_until(holds: Callable[[], bool], *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


def _lives(pid: int) -> bool:
    """What nobody has waited for yet has ended all the same."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_two_sandboxes_with_the_same_names_and_addresses_run_side_by_side(sandbox, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    asked = "curl --version >/dev/null; sleep 2; ip addr show client0 | grep -c 198.18.0.1"
    with ThreadPoolExecutor() as pool:
        outcomes = list(pool.map(sandbox, [("sh", "-c", asked)] * 2))
    assert [outcome.output.strip() for outcome in outcomes] == ["1", "1"]


def test_node_is_a_machine_of_its_own(sandbox):
    assert sandbox("../inside/node").status == 0


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"geteuid": lambda: 1000}, "need root here; run it by sudo, or without root in a guest"),
        ({"which": lambda _, path: None}, "apt-get install iproute2 mount openssh-client openssh-server"),
        ({"find_spec": lambda _: None}, "pip install 'fabbbr\\[fabric,ansible\\]' .*gcc python3-dev"),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(monkeypatch, broken, said):
    monkeypatch.setattr(outside.os, "geteuid", broken.get("geteuid", lambda: 0))
    monkeypatch.setattr(outside.shutil, "which", broken.get("which", lambda tool, path: tool))
    monkeypatch.setattr(outside.importlib.util, "find_spec", broken.get("find_spec", lambda _: object()))
    with pytest.raises(EnvironmentUnfitError, match=said):
        outside.enter(Settings(), ("true",))


def test_fault_that_there_is_not_is_a_usage_error_before_anything_is_made(capsys):
    assert main(["sandbox", "--fault", "earthquake", "--", "true"]) == 2
    assert "there is no fault 'earthquake'" in capsys.readouterr().err
