"""How TCP of the hosts is tuned: what a file may ask, what hosts get, what the certificate makes of it."""

from types import SimpleNamespace
from typing import get_args

import pytest
from golden_cell import CELL
from places import GUEST

from fabbbr.certify import hosts
from fabbbr.commands.plan import row_of
from fabbbr.errors import SpecError
from fabbbr.job.build import prepare
from fabbbr.plan import definitions, expand
from fabbbr.ports import DATA_PORT
from fabbbr.spec import read
from fabbbr.spec.sysctls import Sysctls

RMEM, SACK = "tcp_rmem", "tcp_sack"


def cells(more="", *, flows="{cca: cubic, duration: 5 s}"):
    path = "rate: 10 Mbit/s, rtt: 20 ms"
    text = f"id: made\ntitle: made\nslice: two_site\npath: {{{path}}}\nflows: [{flows}]\nrepeat: 1\n{more}\n"
    return expand.cells(read.parse(text, source="made"), definitions.load, seed=1)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("tcp_rmem: 6 MB", {RMEM: "4096 131072 6000000"}),
        ("tcp_rmem: 100 kB", {RMEM: "4096 100000 100000"}),
        ("tcp_rmem: 4096 16384 6291456", {RMEM: "4096 16384 6291456"}),
        ("tcp_wmem: 4 MiB", {"tcp_wmem": "4096 16384 4194304"}),
        ("tcp_sack: false, tcp_dsack: 'on'", {SACK: "0", "tcp_dsack": "1"}),
        ("tcp_sack: 0", {SACK: "0"}),
        ("tcp_recovery: 3", {"tcp_recovery": "3"}),
    ],
)
def test_hosts_are_set_to_what_is_asked_and_read_back(asked, told):
    (cell,) = cells(f"sysctl: {{{asked}}}")
    assert cell.sysctls == told
    prepared = prepare(cell, GUEST)
    written = [word for command in prepared.job.configure for word in command.argv if command.node == "h1"]
    for name, value in told.items():
        full = f"net.ipv4.{name}"
        assert [word for word in written if word.startswith(f"{full}=")] == [f"{full}={value}"]
        assert all(host.sysctls[full] == value for host in prepared.expected.hosts)
        assert any(full in capture.command.argv for capture in prepared.job.readback)


def test_what_is_not_asked_for_changes_no_job():
    (plain,), (empty,) = cells(), cells("sysctl: {}")
    assert plain.sysctls == {}
    assert prepare(empty, GUEST).job == prepare(plain, GUEST).job
    assert "sysctl" not in row_of(plain)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("net.ipv4.tcp_sack: 0", "unknown key; did you mean 'tcp_sack'"),
        ("tcp_sackk: 0", "did you mean 'tcp_sack'"),
        ("tcp_timestamps: 0", "they stay on"),
        ("net.ipv4.tcp_ecn: 1", "write ecn: true under path"),
        ("tcp_congestion_control: bbr", "is cca"),
        ("tcp_sack: maybe", "write true or false"),
        ("tcp_reordering: 0", "greater than or equal to 1"),
        ("tcp_frto: 1.0", "'1.0' is not a whole number"),
        ("tcp_rmem: 6291456", "no unit; .* or write least, first and most in bytes"),
        ("tcp_rmem: 8192 4096 16384", "in ascending order"),
        ("tcp_rmem: 2 kB", "not from 4096 to"),
        ("tcp_wmem: 4 GB", "not from 4096 to"),
    ],
)
def test_what_hosts_cannot_be_asked_is_refused_with_the_remedy(asked, said):
    with pytest.raises(SpecError, match=said):
        cells(f"sysctl: {{{asked}}}")


@pytest.mark.parametrize("key", ["window", "rmem"])
def test_what_iperf3_calls_it_is_found_here(key):
    with pytest.raises(SpecError, match="did you mean 'tcp_rmem' under sysctl"):
        cells(flows=f"{{cca: cubic, duration: 5 s, {key}: 3 MB}}")


def test_without_a_flow_of_tcp_it_means_nothing():
    with pytest.raises(SpecError, match="no flow is of TCP"):
        cells("sysctl: {tcp_sack: 0}", flows="{udp: 1 Mbit/s, duration: 5 s}, {ping: 1 s}")


def test_an_axis_gives_it_its_values_and_a_plan_shows_them():
    small, large = cells("sysctl: {tcp_rmem: $rmem}\nvary: {rmem: [500 kB, 6 MB]}")
    assert {cell.axes["rmem"]: cell.sysctls[RMEM] for cell in (small, large)} == {
        "500 kB": "4096 131072 500000",
        "6 MB": "4096 131072 6000000",
    }
    assert {row_of(cell)["sysctl"] for cell in (small, large)} == {
        "tcp_rmem 4096 131072 500000",
        "tcp_rmem 4096 131072 6000000",
    }


@pytest.mark.parametrize("name", hosts.SETTINGS["receive window"] + hosts.SETTINGS["send buffer"])
def test_settings_by_which_flows_are_limited_are_ones_that_can_be_asked(name):
    assert name in Sysctls.model_fields


def limited(what, sysctls):
    """The checks of a flow that its host held back for half of the time."""
    said = f"{what}_limited:5000ms(50.0%)"
    ends = f"10.77.0.1:{DATA_PORT} 10.77.0.2:5201", f"10.77.0.2:5201 10.77.0.1:{DATA_PORT}"
    told = {
        "h1": f"ESTAB 0 0 {ends[0]} cubic bytes_acked:900000 busy:10000ms {said}\n",
        "h2": f"ESTAB 0 0 {ends[1]} cubic\n",
    }
    evidence = SimpleNamespace(sockets=told, reports={(0, "client"): None})
    cell = CELL.model_copy(update={"sysctls": sysctls, "flows": CELL.flows[:1]})
    return {check.name: check for check in hosts.unlimited(cell, evidence)}


@pytest.mark.parametrize(
    ("what", "named", "setting"),
    [("rwnd", "receive window", "tcp_rmem"), ("sndbuf", "send buffer", "tcp_wmem")],
)
def test_a_host_that_holds_its_flow_back_is_refused_unless_it_was_asked_to(what, named, setting):
    for others in ({}, {SACK: "0"}, {"tcp_wmem" if what == "rwnd" else RMEM: "4096 8192 8192"}):
        checks = limited(what, others)
        assert not checks[f"not limited by the {named}"].passed
    asked = limited(what, {setting: "4096 8192 8192"})[f"time limited by the {named}"]
    assert asked.passed
    assert asked.asked == f"as the experiment sets {setting} 4096 8192 8192"
    assert "5 of 10 s" in asked.measured


def test_a_receiver_short_of_memory_is_refused_unless_it_was_asked_to():
    pruned = SimpleNamespace(tcp=lambda _host, name: 7 if name == "RcvPruned" else 0)
    before = SimpleNamespace(tcp=lambda _host, _name: 0)
    assert not hosts.kept_by_receivers(CELL, before, pruned).passed
    asked = hosts.kept_by_receivers(
        CELL.model_copy(update={"sysctls": {RMEM: "4096 8192 8192"}}), before, pruned
    )
    assert asked.passed
    assert "RcvPruned 7" in asked.measured


def test_every_setting_says_what_it_is_and_what_the_kernel_does_without_it():
    for name, field in Sysctls.model_fields.items():
        assert type(None) in get_args(field.annotation), name
        assert "Default: " in (field.description or ""), name
