"""Slices of name spaces, for real: made, tried, killed in the middle, torn down, and nothing is left."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest
from name_spaces import cannot, in_a_chroot, ip, links, reserved, spaces, standing

from fabbbr import cli
from fabbbr.backends import namespaces
from fabbbr.backends.namespaces import NamespaceProvider
from fabbbr.errors import BackendError, EnvironmentUnfitError
from fabbbr.slice import measure, state

pytestmark = [
    pytest.mark.skipif(bool(cannot()), reason=cannot() or "it can"),
    pytest.mark.xdist_group("name spaces"),
]


def measured(provider, reservation, topology):
    live = provider.submit(reservation)
    channels = {machine.name: provider.channel(machine) for machine in live.machines}
    return live, measure.measure(reservation, live, topology, channels, lambda _: None)


def fabbbr(*words):
    return cli.main(["slice", *words])


def test_the_whole_life_by_commands(name, kept, capsys):
    create = ("create", name, "--backend", "mininet", "--slice", "two_site", "--skip-prepare", "--json")
    assert fabbbr(*create) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["phase"] == "measured"
    (pair,) = made["pairs"]
    assert 0 < pair["rtt_s"] < 0.1
    assert pair["lost"] == 0
    assert pair["rate_bps"] > 1e7
    assert spaces(name) == ["h1", "h2", "sw"]
    assert fabbbr(*create) == 0
    assert json.loads(capsys.readouterr().out) == made
    assert fabbbr("show", name, "--json") == 0
    assert json.loads(capsys.readouterr().out)["live"]["state"] == "ok"
    assert fabbbr("list", "--json") == 0
    assert [one["reservation"]["name"] for one in json.loads(capsys.readouterr().out)] == [name]
    assert fabbbr("ssh", name, "sw", "--", "sh", "-c", "exit 7") == 7
    assert fabbbr("renew", name, "--for", "24h") == 6
    assert "has no lease" in capsys.readouterr().err
    assert fabbbr("teardown", name) == 2
    assert "give --yes" in capsys.readouterr().err
    assert fabbbr("teardown", name, "--yes") == 0
    assert spaces(name) == []
    assert not kept.exists()
    assert fabbbr("show", name) == 2


def test_show_and_teardown_need_no_memory(name, kept, tmp_path, capsys):
    assert fabbbr("create", name, "--backend", "mininet", "--slice", "two_site", "--skip-prepare") == 0
    shutil.rmtree(tmp_path / "state")
    assert fabbbr("show", name) == 2
    assert "give --backend" in capsys.readouterr().err
    assert fabbbr("show", name, "--backend", "mininet") == 0
    assert fabbbr("teardown", name, "--backend", "mininet", "--yes") == 0
    assert spaces(name) == []


SHAPES = [
    ("two_site", {}, None, {"h1-h2"}),
    ("rtt_pair", {}, None, {"h1-h3", "h2-h3", "h1-h2"}),
    ("dumbbell", {"hosts": 1, "left_site": "A", "right_site": "B"}, None, {"h1-r1"}),
    ("parking_lot", {"hops": 1}, None, {"h1-r1", "x1-y1", "h1-x1", "h1-y1", "r1-x1", "r1-y1"}),
    ("two_site", {}, {"h1": "left", "s1": "left", "h2": "right"}, {"h1-h2"}),
    ("rtt_pair", {}, {"h1": "a", "h2": "a", "s1": "b", "h3": "b"}, {"h1-h3", "h2-h3", "h1-h2"}),
    ("two_site", {}, {"h1": "m", "s1": "m", "h2": "m"}, {"h1-h2"}),
]


@pytest.mark.parametrize(("definition", "parameters", "placement", "pairs"), SHAPES)
def test_every_pair_of_hosts_answers_and_machines_are_afterwards_as_they_were(
    name, kept, definition, parameters, placement, pairs
):
    reservation, topology = reserved(name, definition, placement, **parameters)
    provider = NamespaceProvider()
    live = provider.submit(reservation)
    before = standing(name, live)
    _, found = measured(provider, reservation, topology)
    assert standing(name, live) == before
    assert {f"{pair.sender}-{pair.receiver}" for pair in found} == pairs
    assert all(pair.rtt_s is not None and pair.lost == 0 for pair in found), found
    assert all(pair.rate_bps is not None for pair in found), found
    provider.delete(live)
    assert spaces(name) == []


def test_a_cable_that_is_cut_is_a_pair_without_an_answer_and_no_error(name, kept, monkeypatch):
    monkeypatch.setattr(measure, "_PINGS_LIMIT_S", 2)
    reservation, topology = reserved(name)
    provider = NamespaceProvider()
    live = provider.submit(reservation)
    other = live.machines[1]
    cut = {**other.interfaces, "trunk": "02:ff:ff:ff:ff:ff"}
    ip(
        name,
        "h2",
        "link",
        "add",
        "name",
        "dummy0",
        "address",
        cut["trunk"],
        "type",
        "veth",
        "peer",
        "name",
        "x0",
    )
    machines = tuple(
        one.model_copy(update={"interfaces": cut}) if one == other else one for one in live.machines
    )
    live = live.model_copy(update={"machines": machines})
    channels = {machine.name: provider.channel(machine) for machine in live.machines}
    (pair,) = measure.measure(reservation, live, topology, channels, lambda _: None)
    assert (pair.rtt_s, pair.lost, pair.rate_bps) == (None, 1.0, None)
    assert pair.said == "no ping came back"


def test_an_interface_that_is_missing_is_an_error_with_the_machine_and_others_get_theirs_back(name, kept):
    reservation, topology = reserved(name)
    provider = NamespaceProvider()
    provider.submit(reservation)
    before = links(name, "sw")
    ip(name, "h2", "link", "set", "d-trunk", "address", "02:ff:ff:ff:ff:ff")
    with pytest.raises(BackendError, match=r"machine h2: .*MAC"):
        measured(provider, reservation, topology)
    assert links(name, "sw") == before


def test_killed_while_it_measures_the_machines_get_their_interfaces_back_and_the_same_command_goes_on(
    name, kept, tmp_path
):
    start = (
        "import sys; from fabbbr import cli; "
        "from fabbbr.backends import namespaces; from pathlib import Path; "
        "namespaces.KEPT = Path(sys.argv[1]); sys.exit(cli.main(sys.argv[2:]))"
    )
    create = ("slice", "create", name, "--backend", "mininet", "--slice", "two_site", "--skip-prepare")
    with subprocess.Popen(
        (sys.executable, "-uc", start, kept, *create),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said = ""
        for line in process.stdout:
            said += line
            if "rate h1 to h2" in line:
                break
        else:
            pytest.fail(said)
        assert links(name, "h1") == {}, "it should be in use now"
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 30
    while (not links(name, "h1") or _processes(name)) and time.monotonic() < until:
        time.sleep(0.1)
    assert list(links(name, "h1")) == ["d-access"]
    assert not _processes(name)
    assert cli.main([*create]) == 0
    assert cli.main(["slice", "teardown", name, "--yes"]) == 0
    assert spaces(name) == []


def test_left_half_made_it_is_made_anew_and_one_of_another_name_stays(name, kept, monkeypatch):
    provider = NamespaceProvider()
    reservation, _ = reserved(name)
    real = namespaces._ip

    def interrupted(*words, **more):
        if words[0] == "-batch":
            raise KeyboardInterrupt
        return real(*words, **more)

    with monkeypatch.context() as patched:
        patched.setattr(namespaces, "_ip", interrupted)
        with pytest.raises(KeyboardInterrupt):
            provider.submit(reservation)
    assert spaces(name) == ["h1", "h2", "sw"]
    assert provider.find(name).state == "configuring"
    assert provider.submit(reservation).state == "ok"
    assert list(links(name, "sw")) == ["d-access", "d-trunk"]
    provider.delete(provider.find(name))
    assert provider.find(name) is None
    assert spaces(name) == []


def test_deleting_ends_what_runs_there(name, kept):
    provider = NamespaceProvider()
    live = provider.submit(reserved(name)[0])
    with subprocess.Popen(("ip", "netns", "exec", live.machines[0].address, "sleep", "600")) as process:
        while not ip(name, "h1", "netns", "pids", live.machines[0].address).strip():
            time.sleep(0.05)
        provider.delete(live)
        assert process.wait(10) == -signal.SIGKILL
    provider.delete(live)
    assert provider.refresh(live).state == "gone"


def test_after_a_restart_of_the_machine_it_is_said_to_be_gone_and_can_be_made_again(name, kept):
    provider = NamespaceProvider()
    reservation, _ = reserved(name)
    live = provider.submit(reservation)
    for machine in spaces(name):
        subprocess.run(("ip", "netns", "delete", f"fabbbr-{name}+{machine}"), check=True)
    assert provider.find(name).state == "failed"
    assert "after a restart" in provider.find(name).said
    provider.delete(live)
    assert provider.submit(reservation).state == "ok"
    provider.delete(live)


def test_names_that_end_alike_are_slices_of_their_own(kept, name):
    provider = NamespaceProvider()
    both = [reserved(f"{name}{end}")[0] for end in ("", "-h1")]
    lives = [provider.submit(reservation) for reservation in both]
    provider.delete(lives[0])
    assert provider.refresh(lives[1]).state == "ok"
    assert provider.channel(lives[1].machines[0]).folder == str(kept / f"{name}-h1" / "h1")
    provider.delete(lives[1])


def _processes(name):
    done = subprocess.run(("pgrep", "-f", f"kept/{name}/"), capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_where_name_spaces_cannot_be_entered_it_is_said_at_once_and_nothing_is_left(name, tmp_path):
    program = (sys.executable, "-m", "fabbbr.cli")
    words = ("slice", "create", name, "--backend", "mininet", "--slice", "two_site", "--skip-prepare")
    done = in_a_chroot(tmp_path / "root", *program, *words)
    assert done.returncode == EnvironmentUnfitError.exit_status, done.stderr
    assert "can be made here and not entered" in done.stderr
    assert "mount --bind ROOT ROOT" in done.stderr
    assert spaces(name) == []
    assert not namespaces.KEPT.joinpath(f"{name}.json").exists()
    assert state.load(name) is None


def test_doctor_does_not_take_that_for_a_kernel_without_queueing_disciplines(tmp_path):
    done = in_a_chroot(tmp_path / "root", sys.executable, "-m", "fabbbr.cli", "doctor")
    (line,) = (one for one in done.stdout.splitlines() if "Mininet on this host" in one)
    assert "a way into a network name space is missing" in line
    assert "queueing discipline" not in line
