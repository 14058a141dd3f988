"""Flows that come at random share their programs: each does what it would with programs of its own."""

import numpy as np
import pytest
from guest.cells import experiment, run

from fabbbr.ports import MOST_PROGRAMS, first_data_port

pytestmark = pytest.mark.guest

PATH = "rate: 20 Mbit/s, rtt: 20 ms, buffer: 40 BDP"
LONG = "{cca: cubic, duration: 3 s}"
SIZES = "{distribution: lognormal, mean: 30 kB, sigma: 1, most: 200 kB}"
WEB = f"{{arrivals: {{rate: 8 /s, size: {SIZES}}}, cca: cubic, duration: 3 s, label: web}}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return run(tmp_path_factory.mktemp("shared"), experiment("shared", path=PATH, flows=f"{LONG}, {WEB}"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory, shared):
    """The same flows, each in a group and with programs of its own."""
    came = [flow for flow in shared.cell().manifest.cell.flows if flow.at_random]
    groups = (f"{{cca: cubic, size: {flow.size.bytes} B, start: {flow.start.ns} ns}}" for flow in came)
    text = experiment("alone", path=PATH, flows=", ".join([LONG, *groups]))
    return run(tmp_path_factory.mktemp("alone"), text)


def test_a_flow_completes_when_it_would_with_programs_of_its_own(shared, alone):
    assert (shared.wrong(), alone.wrong()) == ({}, {})
    one, other = shared.set.flows, alone.set.flows
    assert len(one) == len(other) > 10
    assert one["retransmits"].sum() == 0
    for name in ("start_s", "completion_s", "goodput_bps"):
        np.testing.assert_allclose(one[name].astype(float), other[name].astype(float), rtol=0, atol=1e-6)


def test_what_each_has_is_in_one_file_of_an_end(shared, alone):
    flows = shared.json("flows.json")
    assert [flow.get("batch") for flow in flows] == [None] + [0] * (len(flows) - 1)
    names = {path.name for path in (shared.cell().folder / "raw").iterdir()}
    assert {"batch-0.client.json", "batch-0.server.json", "flow-0.client.json"} <= names
    assert not any(name.startswith("flow-1.") for name in names)
    assert [flow.get("batch") for flow in alone.json("flows.json")] == [None] * len(flows)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More than would have programs of their own, each of two streams."""
    text = experiment(
        "many",
        path="rate: 50 Mbit/s, rtt: 10 ms, buffer: 4 BDP",
        flows="{arrivals: {rate: 300 /s, size: 10 kB}, cca: reno, streams: 2, duration: 2 s, label: web}, "
        "{cca: cubic, duration: 2 s}",
        more="sample_period: 10 ms",
    )
    return run(tmp_path_factory.mktemp("many"), text)


def test_hundreds_are_certified_and_complete(many):
    assert many.wrong() == {}
    web = many.set.flows[many.set.flows["group"] == "web"]
    assert len(web) > MOST_PROGRAMS
    assert set(web["received_bytes"]) == {10_000}
    assert (web["completion_s"] >= 1.5 * 0.010).all()


def test_each_socket_is_known_as_a_stream_of_its_flow(many):
    flows = len(many.cell().manifest.cell.flows)
    sockets = many.set.sockets()
    sent = sockets[sockets["side"] == "sender"]
    streams = sent["local_port"] - sent["flow"].map(lambda flow: first_data_port(flow, flows=flows))
    assert set(streams[sent["flow"] < flows - 1]) == {0, 1}
    assert set(streams[sent["flow"] == flows - 1]) == {0}
    seen = sockets[(sockets["side"] == "receiver") & (sockets["flow"] < flows - 1)]
    assert seen["flow"].nunique() > MOST_PROGRAMS
    assert seen["bytes_received"].max() <= 5_000 + 1  # the FIN counts as a byte


@pytest.fixture(scope="module")
def hopeless(tmp_path_factory):
    """At this pace each takes 800 s; one is given up after 100 times what all would take alone, and 30 s."""
    text = experiment(
        "hopeless",
        path="rate: 10 Mbit/s, rtt: 20 ms, buffer: 1 BDP",
        flows="{cca: cubic, duration: 1 s}, "
        "{arrivals: {rate: 1 /s, size: 1 MB}, cca: cubic, pacing: 10 kbit/s, duration: 2 s, label: slow}",
    )
    return run(tmp_path_factory.mktemp("hopeless"), text)


def test_one_whose_time_is_up_keeps_what_arrived(hopeless):
    assert hopeless.wrong() == {}
    slow = hopeless.set.flows[hopeless.set.flows["group"] == "slow"]
    assert len(slow) > 0
    assert set(slow["outcome"]) == {"interrupted"}
    assert set(slow["error"]) == {"its time was up"}
    assert slow["completion_s"].isna().all()
    assert (slow["received_bytes"] > 100_000).all()
    records = [record for record in hopeless.json("flows.json") if "batch" in record]
    assert all(record["timed_out"] for record in records)
    flows = hopeless.cell().manifest.cell.flows
    longest_s = len(flows) * 100 * 8 * 1_000_000 / 10e6 + 30 + 100 * 0.020
    assert [record["ended_s"] for record in records] == pytest.approx(
        [flow.start.seconds + longest_s for flow in flows if flow.at_random], abs=0.001
    )
