"""The library that makes iperf3 cheap in a guest changes what a cell costs, not what comes of it."""

import pandas as pd
import pytest
from guest.cells import experiment, run

from fabbbr.backends.guest import wakeups
from fabbbr.job.cabling import lay_cables
from fabbbr.job.flows import block_bytes

pytestmark = pytest.mark.guest

CLOSING_S = 0.010
FRAME_BYTES = 1514
SAID_BY_ACKNOWLEDGEMENTS = [
    *("t_s", "flow", "side", "local_port"),
    *("rtt_s", "rttvar_s", "cwnd_segments", "unacked_segments", "sacked_segments"),
    *("bytes_sent", "bytes_retrans", "bytes_acked", "delivered_segments", "delivery_rate_bps"),
]
CELLS = {
    "slow": ("rate: 10 Mbit/s, rtt: 40 ms", "{cca: cubic, duration: 5 s}"),
    "odd_bursts": ("rate: 40 Mbit/s, rtt: 100 ms", "{cca: cubic, duration: 5 s}"),
    "fast": ("rate: 1 Gbit/s, rtt: 20 ms", "{cca: cubic, duration: 3 s}"),
    "many": ("rate: 100 Mbit/s, rtt: 20 ms", "{cca: cubic, duration: 4 s, count: 16}"),
    "streams": ("rate: 100 Mbit/s, rtt: 20 ms", "{cca: bbr1, duration: 4 s, streams: 4}"),
    "reverse": ("rate: 100 Mbit/s, rtt: 20 ms", "{cca: cubic, duration: 4 s, direction: reverse}"),
    "lossy": (
        "rate: 100 Mbit/s, rtt: 40 ms, loss: {rate: 5 %, position: after_bottleneck}",
        "{cca: bbr1, duration: 5 s}",
    ),
    "sized": ("rate: 10 Mbit/s, rtt: 20 ms", "{cca: cubic, size: 1 MB}, {cca: cubic, duration: 3 s}"),
}


@pytest.fixture(scope="module", params=CELLS)
def pair(request, tmp_path_factory):
    """The same cell, plain and with the library."""
    path, flows = CELLS[request.param]
    text = experiment(request.param, path=f"{path}, buffer: 1 BDP", flows=flows)
    plain_folder, folder = (tmp_path_factory.mktemp(request.param) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wakeups, "environment", lambda _: {})
        plain = run(plain_folder, text)
    return plain, run(folder, text)


def received(ran):
    """Bytes that the receiver had told: a row per second, a column per flow and stream.

    What comes after the last whole second belongs to it: iperf3 leaves an interval out when it has no data.
    """
    intervals = ran.set.intervals.query("side == 'receiver'")
    last = intervals["end_s"].max().round() - 1
    second = intervals["start_s"].round().clip(upper=last).rename("second")
    return intervals.groupby([second, "flow", "stream"])["bytes"].sum().unstack(["flow", "stream"]).cumsum()


def acknowledgements(ran):
    """What the receivers' interfaces sent."""
    manifest = ran.cell().manifest
    cabling = lay_cables(manifest.cell, manifest.provenance.testbed)
    before, after = (ran.json(f"counters.{when}.json") for when in ("before", "after"))
    ports = {flow.receiver: cabling.interfaces(flow.receiver)[0].name for flow in manifest.cell.flows}

    def sent(counters, node):
        (link,) = (link for link in counters[node]["links"] if link["ifname"] == ports[node])
        return link["stats64"]["tx"]["packets"]

    return sum(sent(after, node) - sent(before, node) for node in ports)


def test_only_one_of_them_has_the_library(pair):
    plain, ran = (each.cell().manifest.provenance.options["iperf3_wakeups"] for each in pair)
    assert (plain, ran) == (None, wakeups.environment("virtual"))
    assert [each.wrong() for each in pair] == [{}, {}]


def test_no_interval_and_no_total_lacks_a_byte(pair):
    plain, ran = pair
    cell = ran.cell().manifest.cell
    more = received(ran) - received(plain)
    assert more.count().tolist() == received(plain).count().tolist() == received(ran).count().tolist()
    assert more.min().min() >= 0
    # Without the library iperf3 keeps to itself what is not yet a whole block.
    assert more.max().max() < max(block_bytes(cell, flow) for flow in cell.flows)


def test_what_is_on_the_wire_stays_the_same(pair):
    """A connection whose last bytes nobody counts any more is read up to 10 ms longer, or shorter."""
    plain, ran = pair
    cell = ran.cell().manifest.cell
    segments = cell.bottleneck.rate.bps * CLOSING_S / 8 / FRAME_BYTES
    assert ran.set.flows["retransmits"].tolist() == plain.set.flows["retransmits"].tolist()
    assert abs(acknowledgements(ran) - acknowledgements(plain)) <= segments


def test_senders_are_the_same_in_every_sample_until_a_flow_ends(pair):
    """What a sender knows, it knows by acknowledgements: their number, their instants and what they say."""
    end_s = min((each.set.flows["start_s"] + each.set.flows["sender_s"]).min() for each in pair)

    def seen(ran):
        samples = ran.set.sockets(SAID_BY_ACKNOWLEDGEMENTS)
        senders = samples[(samples["side"] == "sender") & (samples["t_s"] < end_s)]
        return senders.reset_index(drop=True)

    plain, with_library = map(seen, pair)
    assert len(plain) > 20
    pd.testing.assert_frame_equal(plain, with_library)
