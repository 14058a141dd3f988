"""What a guest emulates is what physics says it must be."""

import re

import numpy as np
import pytest
from guest.cells import experiment, run
from guest.links import ETHERNET_BYTES, TCP_IP_BYTES, ceiling_bps, departure_rate_bps, numbers, of_bottleneck
from scipy.stats import binom

from fabbbr.model import AQM_TARGETS, THRESHOLD_AQMS
from fabbbr.physics import idle_aqms

pytestmark = pytest.mark.guest

SPAN = """warm_up: $warm
vary:
  - zip:
      rate: [1 Mbit/s, 2 Mbit/s, 5 Mbit/s, 10 Mbit/s, 20 Mbit/s, 50 Mbit/s, 100 Mbit/s, 200 Mbit/s, 500 Mbit/s, 1 Gbit/s]
      rtt: [200 ms, 100 ms, 50 ms, 150 ms, 1 ms, 20 ms, 10 ms, 40 ms, 5 ms, 2 ms]
      buffer: [2 BDP, 1 BDP, 1 BDP, 1 BDP, 20 BDP, 1 BDP, 1 BDP, 1 BDP, 1 BDP, 1 BDP]
      duration: [20 s, 9 s, 9 s, 9 s, 6 s, 6 s, 5 s, 5 s, 4 s, 4 s]
      warm: [9 s, 3 s, 3 s, 3 s, 2 s, 2 s, 2 s, 2 s, 1 s, 1 s]
"""  # noqa: E501
RATES_MBIT = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def grown(ran, node, device, key):
    """Growth of a link's packet counter over the flows."""
    counts = []
    for name in ("counters.before.json", "counters.after.json"):
        links = {link["ifname"]: link["stats64"] for link in ran.json(name)[node]["links"]}
        counts.append(links[device][key]["packets"])
    return counts[1] - counts[0]


def dropped(ran, node, device, kind):
    """Growth of the drop counters of all qdiscs of a kind on a device."""
    told = [
        sum(
            qdisc["drops"]
            for qdisc in ran.json(name)[node]["qdiscs"]
            if qdisc["dev"] == device and qdisc["kind"] == kind
        )
        for name in ("counters.before.json", "counters.after.json")
    ]
    return told[1] - told[0]


@pytest.fixture(scope="module")
def span(tmp_path_factory):
    """One CUBIC flow over three orders of rate and two of RTT."""
    text = experiment(
        "span",
        path="rate: $rate, rtt: $rtt, buffer: $buffer",
        flows="{cca: cubic, duration: $duration}",
        more=SPAN,
    )
    return run(tmp_path_factory.mktemp("span"), text)


def test_every_path_from_1_mbit_to_1_gbit_and_1_to_200_ms_is_certified(span):
    assert span.wrong() == {}
    assert len(span.summary.certified) == len(RATES_MBIT)


@pytest.mark.parametrize("mbit", RATES_MBIT)
def test_a_busy_link_sends_at_its_rate_and_delivers_the_payload_of_full_frames(span, mbit):
    ((cell_id, warm_up_s),) = span.set.runs.loc[
        span.set.runs["rate_bps"] == mbit * 1e6, ["cell_id", "warm_up_s"]
    ].to_numpy()
    # In slow start a queue that two looks see may have been empty between them.
    samples = numbers(of_bottleneck(span, cell_id))
    assert departure_rate_bps(samples[samples["t_s"] > warm_up_s]) == pytest.approx(mbit * 1e6, rel=0.002)
    (goodput_bps,) = span.set.runs.loc[span.set.runs["cell_id"] == cell_id, "goodput_steady_bps"]
    assert goodput_bps == pytest.approx(ceiling_bps(mbit * 1e6), rel=0.002)


@pytest.fixture(scope="module")
def deep_buffer(tmp_path_factory):
    text = experiment(
        "deep", path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 4 BDP", flows="{cca: cubic, duration: 10 s}"
    )
    return run(tmp_path_factory.mktemp("deep"), text)


def test_cubic_fills_a_buffer_of_4_bdp_to_its_last_frame(deep_buffer):
    """Frames there must not be charged to the sender: TCP small queues would hold it back."""
    queue = of_bottleneck(deep_buffer)
    buffer_bytes = deep_buffer.cell().manifest.cell.bottleneck.buffer_bytes
    assert queue["backlog_bytes"].max() > buffer_bytes - 4 * 1514
    assert queue["drops"].iloc[-1] > queue["drops"].iloc[0]


def test_a_full_buffer_adds_its_bytes_over_the_rate_to_the_round_trip(deep_buffer):
    sockets = deep_buffer.set.sockets(["side", "rtt_s"])
    longest_s = sockets.loc[sockets["side"] == "sender", "rtt_s"].max()
    assert longest_s == pytest.approx(0.020 + 4 * 50_000 * 8 / 20e6, rel=0.03)


def test_a_sender_is_charged_for_no_packet_that_has_left_it(deep_buffer):
    charged = re.findall(
        r"10\.77\.0\.1:32768 .*?skmem:\(r\d+,rb\d+,t(\d+),", deep_buffer.raw("sockets.h1.txt")
    )
    assert len(charged) > 50
    assert set(charged) == {"0"}


AQMS = ["codel", "fq_codel", "cake", "red", "pie", "fq_pie"]
AQM = """warm_up: 2 s
vary:
  - zip:
      aqm: [taildrop, codel, codel, fq_codel, fq_codel, cake, cake, red, red, pie, pie, fq_pie, fq_pie]
      ecn: [false, false, true, false, true, false, true, false, true, false, true, false, true]
"""


@pytest.fixture(scope="module")
def aqms(tmp_path_factory):
    text = experiment(
        "aqms",
        path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 4 BDP, aqm: $aqm, ecn: $ecn",
        flows="{cca: cubic, duration: 6 s, count: 2}",
        more=AQM,
    )
    return run(tmp_path_factory.mktemp("aqms"), text)


def test_every_aqm_is_certified_and_leaves_the_link_full(aqms):
    assert aqms.wrong() == {}
    assert aqms.set.runs["goodput_steady_bps"].tolist() == pytest.approx([ceiling_bps(20e6)] * 13, rel=0.005)


@pytest.mark.parametrize("aqm", AQMS)
def test_an_aqm_drops_without_ecn_and_marks_with_it(aqms, aqm):
    def told(ecn):
        queue = of_bottleneck(aqms, f"aqm={aqm},ecn={ecn},r1")
        return queue["drops"].iloc[-1] - queue["drops"].iloc[0], queue["ecn_marks"].iloc[-1]

    drops, marks = told("false")
    assert (drops > 0, marks) == (True, 0)
    drops, marks = told("true")
    assert (drops, marks > 0) == (0, True)


@pytest.mark.parametrize("aqm", ["codel", "pie"])
def test_an_aqm_never_acts_where_its_buffer_drains_before(tmp_path, aqm):
    """Packets that ECN is on for are marked as soon as the AQM acts, and dropped where the buffer is full."""
    below, above = {"codel": ("4.9 ms", "40 ms"), "pie": ("7.4 ms", "40 ms")}[aqm]
    text = experiment(
        "idle",
        path=f"rate: 20 Mbit/s, rtt: 40 ms, buffer: $buffer, aqm: {aqm}, ecn: true",
        flows="{cca: cubic, duration: 8 s, count: 2}",
        more=f"warm_up: 2 s\nvary: {{buffer: [{below}, {above}]}}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    assert {cell.condition for cell in ran.set.plan.values() if idle_aqms([cell])} == {
        f"buffer={below.replace(' ', '')}"
    }
    for buffer, marks in ((below, False), (above, True)):
        queue = of_bottleneck(ran, f"buffer={buffer.replace(' ', '')},r1")
        assert bool(queue["ecn_marks"].iloc[-1] > 0) is marks
        assert marks or queue["drops"].iloc[-1] > queue["drops"].iloc[0]


@pytest.mark.parametrize("aqm", AQMS)
def test_an_aqm_keeps_less_standing_than_tail_drop(aqms, aqm):
    def mean(name):
        return of_bottleneck(aqms, f"aqm={name},ecn=false,r1").query("t_s > 2")["backlog_bytes"].mean()

    assert mean(aqm) < 0.7 * mean("taildrop")


def test_what_follows_a_step_is_of_the_link_that_it_changes(tmp_path):
    """The first bottleneck has 20 Mbit/s all the time, and nobody fills it while the second has 5."""
    text = experiment(
        "later",
        slice_="{name: parking_lot, hops: 2}",
        path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 1 BDP",
        flows="{cca: cubic, duration: 5 s}",
        more="steps: [{at: 2 s, link: hop2, rate: 5 Mbit/s}]\nwarm_up: 1 s",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    (after,) = ran.set.groups.query("phase_name.str.startswith('from 2 s')", engine="python").to_dict(
        "records"
    )
    assert after["goodput_bps"] == pytest.approx(ceiling_bps(5e6), rel=0.03)
    assert after["recovery_s"] <= 0.5


def test_a_step_of_the_buffer_is_kept_by_every_aqm(tmp_path):
    text = experiment(
        "resized",
        path="rate: 50 Mbit/s, rtt: 40 ms, buffer: 400 packets, aqm: $aqm",
        flows="{cca: bbr1, duration: 4 s}",
        more="steps: [{at: 2 s, buffer: 6 packets}]\nwarm_up: 1 s\nvary: {aqm: %s}" % ["taildrop", *AQMS],
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    for cell_id in ran.summary.certified:
        samples = of_bottleneck(ran, cell_id)
        before, after = samples.query("t_s < 2"), samples.query("t_s > 2.1")
        assert before["backlog_bytes"].max() > 6 * 1514
        assert after["backlog_bytes"].max() <= 6 * 1514


SLOW_AQM = """vary:
  aqm: [codel, fq_codel, cake, red, pie, fq_pie]
  rate: [200 kbit/s, 2 Mbit/s]
  buffer: [4 packets, 60 packets]
"""


def test_an_aqm_is_certified_on_slow_links_and_in_small_buffers(tmp_path):
    """CoDel drops after 100 ms, which are eight packets at 1 Mbit/s: fewer than it takes to measure."""
    text = experiment(
        "slow",
        path="rate: $rate, rtt: 40 ms, buffer: $buffer, aqm: $aqm",
        flows="{cca: cubic, duration: 2 s}",
        more=SLOW_AQM,
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    assert len(ran.summary.certified) == 4 * len(AQMS)


def test_acknowledgements_that_wait_longer_than_their_link_delays_are_certified(tmp_path):
    text = experiment(
        "held",
        path="rate: 60 Mbit/s, rtt: 1 ms, buffer: 20 packets, ack_aggregation: {least: 0.2 ms, most: 3 ms}",
        flows="{cca: bbr1, duration: 2 s}",
        more="repeat: 6",
    ).replace("repeat: 1\n", "")
    assert run(tmp_path, text).wrong() == {}


def test_five_hops_of_20_ms_make_a_round_trip_of_100_ms(tmp_path):
    text = experiment(
        "lot",
        path="rate: 20 Mbit/s, rtt: 20 ms",
        flows="{cca: cubic, duration: 3 s}",
        slice_="{name: parking_lot, hops: 5}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    (ping,) = ran.json("preflight.json")["pings"].values()
    low_ms, high_ms = map(float, re.search(r"= ([\d.]+)/[\d.]+/([\d.]+)/", ping["stdout"]).groups())
    serialisation_ms = 5 * 98 * 8 / 20e6 * 1e3
    assert 100.0 <= low_ms <= high_ms <= 100.0 + serialisation_ms + 0.005
    assert ran.set.flows["rtt_propagation_s"].tolist() == [0.1]


LOSS = """vary:
  - zip:
      loss: [1 %, 20 %, 1 %, 20 %]
      position: [after_bottleneck, after_bottleneck, before_bottleneck, before_bottleneck]
"""


@pytest.fixture(scope="module")
def losses(tmp_path_factory):
    text = experiment(
        "losses",
        path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 4 BDP, loss: {rate: $loss, position: $position}",
        flows="{cca: bbr1, duration: 5 s}",
        more=LOSS,
    )
    return run(tmp_path_factory.mktemp("losses"), text)


def test_loss_of_1_and_20_percent_on_either_side_of_the_bottleneck_is_certified(losses):
    assert losses.wrong() == {}


@pytest.mark.parametrize("position", ["after_bottleneck", "before_bottleneck"])
def test_injected_loss_falls_where_it_was_asked_for(losses, position):
    queues = losses.set.queues(["role", "link", "drops"], [f"loss=20%,position={position},r1"])
    lossy = queues[queues["role"] == "loss"]
    assert set(lossy["link"]) == {"trunk" if position == "after_bottleneck" else "access"}
    assert lossy["drops"].max() > 100


def test_bursty_loss_of_the_gilbert_elliott_model_is_certified_and_conserves_packets(tmp_path):
    text = experiment(
        "bursty",
        path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 1 BDP, "
        "loss: {rate: 0.5 %, model: gilbert_elliott, recovery: 30 %}",
        flows="{cca: bbr1, duration: 6 s}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    injected, congested = dropped(ran, "w1", "w1-eth1", "netem"), dropped(ran, "s1", "s1-eth1", "tbf")
    assert injected > 50
    assert grown(ran, "h1", "h1-eth0", "tx") == grown(ran, "h2", "h2-eth0", "rx") + injected + congested


def test_jumbo_frames_carry_their_larger_share_of_payload(tmp_path):
    text = experiment(
        "jumbo",
        path="rate: 100 Mbit/s, rtt: 10 ms, buffer: 2 BDP, mtu: 9000",
        flows="{cca: cubic, duration: 4 s}",
        more="warm_up: 1 s",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    (goodput_bps,) = ran.set.runs["goodput_steady_bps"]
    assert goodput_bps == pytest.approx(ceiling_bps(100e6, 9000), rel=0.002)


def test_steps_of_rate_rtt_and_buffer_take_effect_at_their_instants(tmp_path):
    text = experiment(
        "steps",
        path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 100 kB",
        flows="{cca: cubic, duration: 9 s}",
        more="steps: [{at: 3 s, rate: 10 Mbit/s}, {at: 5 s, rtt: 200 ms}, {at: 7 s, buffer: 20 kB}]\n"
        "sample_period: 10 ms",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    for step in ran.json("steps.json"):
        assert step["done_s"] == pytest.approx(step["at_s"], abs=0.001)
    queue = numbers(of_bottleneck(ran))
    assert departure_rate_bps(queue.query("1 < t_s < 3.0")) == pytest.approx(20e6, rel=0.005)
    assert departure_rate_bps(queue.query("3.0 < t_s < 5")) == pytest.approx(10e6, rel=0.005)
    sockets = ran.set.sockets(["t_s", "side", "rtt_s"])
    rtt = sockets[sockets["side"] == "sender"]
    assert rtt.query("1 < t_s < 5")["rtt_s"].max() < 0.020 + 100_000 * 8 / 10e6 + 0.005
    assert rtt.query("6 < t_s < 7")["rtt_s"].min() > 0.2
    assert queue.query("1 < t_s < 5")["backlog_bytes"].max() > 20_000
    assert queue.query("7.2 < t_s < 9")["backlog_bytes"].max() <= 20_000


def test_a_mahimahi_trace_sets_the_rate_of_each_tenth_of_a_second(tmp_path):
    """12 Mbit/s in one half of every second and 6 Mbit/s in the other."""
    opportunities = [*range(1, 501), *range(502, 1001, 2)]
    (tmp_path / "halves.up").write_text("".join(f"{at}\n" for at in opportunities), encoding="ascii")
    text = experiment(
        "trace",
        path="trace: halves.up, rtt: 20 ms, buffer: 100 packets",
        flows="{cca: cubic, duration: 6 s}",
        more="sample_period: 10 ms",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    queue = numbers(of_bottleneck(ran)).query("1 < t_s < 6")
    phase = queue["t_s"] % 1.0
    for low, high, rate_bps in ((0.01, 0.49, 12e6), (0.51, 0.99, 6e6)):
        runs = [part for _, part in queue[(phase > low) & (phase < high)].groupby(queue["t_s"] // 1)]
        told = [departure_rate_bps(part) for part in runs if len(part) > 40]
        assert told == pytest.approx([rate_bps] * len(told), rel=0.02)
        assert len(told) >= 3


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory):
    text = experiment(
        "both",
        path="rate: 20 Mbit/s, rtt: 20 ms",
        flows="{cca: cubic, duration: 4 s}, {cca: bbr1, duration: 4 s, direction: reverse}",
        more="sample_period: 1 ms\nwarm_up: 1 s",
    )
    return run(tmp_path_factory.mktemp("both"), text)


def test_flows_in_both_directions_each_get_most_of_a_link_of_their_own(both_ways):
    assert both_ways.wrong() == {}
    flows = both_ways.set.flows
    assert flows["sender"].tolist() == ["h1", "h2"]
    assert flows["goodput_steady_bps"].min() > 0.85 * ceiling_bps(20e6)
    assert flows["goodput_steady_bps"].max() < 1.002 * ceiling_bps(20e6)


def test_samples_asked_for_every_millisecond_come_every_millisecond(both_ways):
    for name in ("sockets.h1.times", "queues.s1.times"):
        times = [float(line.split()[0]) for line in both_ways.raw(name).splitlines()]
        # The first look waits until the flows have been started.
        during = np.array([t for t in times if 0.002 < t < 4])
        assert len(during) >= 3_996
        assert np.abs(np.diff(during) - 0.001).max() < 50e-6


@pytest.fixture(scope="module")
def aggregated(tmp_path_factory):
    """A flow whose acknowledgements come one by one, every 5 ms, or every 10, as long as their way is."""
    text = experiment(
        "aggregated",
        path="rate: 20 Mbit/s, rtt: 20 ms, ack_aggregation: $held",
        flows="{cca: cubic, duration: 4 s}",
        more="sample_period: 1 ms\nvary: {held: [0 ms, 5 ms, 10 ms]}",
    )
    return run(tmp_path_factory.mktemp("aggregated"), text)


@pytest.mark.parametrize(("held", "least_ms", "most_ms"), [("0ms", 0, 2.5), ("5ms", 5, 8), ("10ms", 10, 13)])
def test_acknowledgements_arrive_in_aggregates_that_are_as_far_apart_as_asked(
    aggregated, held, least_ms, most_ms
):
    """Without aggregation every other frame is acknowledged, at 0.6 ms a frame."""
    assert aggregated.wrong() == {}
    sockets = aggregated.set.sockets(cell_ids=[f"held={held},r1"])
    sender = sockets[(sockets["side"] == "sender") & sockets["t_s"].between(2, 4)].sort_values("t_s")
    arrivals = sender["t_s"][sender["bytes_acked"].diff() > 0]
    gaps_ms = 1e3 * arrivals.diff().dropna()
    assert len(gaps_ms) > 100
    assert gaps_ms.min() > least_ms - 1.5  # between two looks, of a millisecond each
    assert gaps_ms.quantile(0.99) < most_ms


LATE = ("0ms", "5ms", "60ms")


@pytest.fixture(scope="module")
def overtaken(tmp_path_factory):
    """One packet in fifty comes late, or none: of a datagram every 1.5 ms for 4 s, then of CUBIC."""
    text = experiment(
        "overtaken",
        path="rate: 20 Mbit/s, rtt: 40 ms, buffer: 2 BDP, reordering: {rate: 2 %, late: $late}",
        flows="{udp: 8 Mbit/s, duration: 4 s}, {cca: cubic, duration: 6 s, start: 5 s}",
        more="vary: {late: [0 ms, 5 ms, 60 ms]}\nwarm_up: 1 s",
    )
    return run(tmp_path_factory.mktemp("overtaken"), text)


@pytest.mark.parametrize("late", LATE)
def test_as_many_packets_are_overtaken_as_come_late_and_none_is_lost(overtaken, late):
    """Of ten thousand such cells one may have a share so far from that asked."""
    assert overtaken.wrong() == {}
    flows = overtaken.set.flows
    (udp,) = flows[(flows["cell_id"] == f"late={late},r1") & flows["datagrams_sent"].notna()].itertuples()
    assert udp.datagrams_lost == 0
    low, high = binom.interval(0.9999, int(udp.datagrams_sent), 0.0 if late == "0ms" else 0.02)
    assert low <= udp.datagrams_reordered <= high


def test_what_comes_late_is_sent_again_where_it_is_later_than_a_sender_waits(overtaken):
    """RACK (RFC 8985) waits a quarter of a round trip where it saw reordering, and a whole one at most.

    So of what comes 5 ms late next to nothing is sent again, of what comes 60 ms late each once or twice.
    """
    spurious = {late: runs_of(overtaken, late)["spurious_ratio"] for late in LATE}
    assert spurious["0ms"] == 0
    assert spurious["5ms"] < 0.001
    assert 0.01 < spurious["60ms"] < 0.04


def runs_of(ran, late):
    return ran.set.runs.set_index("cell_id").loc[f"late={late},r1"]


def test_lateness_alone_does_not_lengthen_the_round_trip(overtaken):
    """A train of single packets, as before the flows, has all on time but those that are late."""
    (check,) = (
        check
        for check in overtaken.cell("late=60ms,r1").manifest.certificate.checks
        if check.name == "reordering on trunk"
    )
    assert check.passed
    assert check.measured.endswith(", 60 ms late")


def test_a_flow_paced_below_the_rate_of_the_link_keeps_its_pace(tmp_path):
    text = experiment(
        "paced",
        path="rate: 20 Mbit/s, rtt: 20 ms",
        flows="{cca: cubic, duration: 4 s, pacing: 4 Mbit/s}",
        more="warm_up: 1 s",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    queue = numbers(of_bottleneck(ran)).query("1 < t_s < 4")
    first, last = queue.iloc[0], queue.iloc[-1]
    sent_bps = 8 * (last["sent_bytes"] - first["sent_bytes"]) / (last["t_s"] - first["t_s"])
    # Linux paces the payload of a packet, without its headers.
    assert sent_bps == pytest.approx(4e6 * (1500 + ETHERNET_BYTES) / (1500 - TCP_IP_BYTES), rel=0.002)


def test_fq_lets_no_connection_of_its_host_exceed_the_rate_and_another_host_is_free(tmp_path):
    text = experiment(
        "limited",
        path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 2 BDP",
        flows="{cca: cubic, from: h1, duration: 5 s, count: 2, maxrate: 2 Mbit/s},"
        "{cca: bbr1, from: h2, duration: 5 s, start: 5 s}",
        slice_="{name: dumbbell, hosts: 2}",
        more="warm_up: 1 s",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    assert [check.name for check in ran.cell().manifest.certificate.checks if "fq" in check.name] == [
        "fq at h1-eth0"
    ]
    queue = numbers(of_bottleneck(ran)).query("1 < t_s < 4.5")
    first, last = queue.iloc[0], queue.iloc[-1]
    sent_bps = 8 * (last["sent_bytes"] - first["sent_bytes"]) / (last["t_s"] - first["t_s"])
    # Two connections; fq counts whole frames.
    assert sent_bps == pytest.approx(2 * 2e6, rel=0.005)
    (free,) = ran.set.flows.query("cca == 'bbr1'")["goodput_bps"]
    assert free > 0.8 * ceiling_bps(20e6)


@pytest.mark.parametrize("aqm", AQM_TARGETS)
def test_a_queue_waits_for_the_target_of_its_aqm(tmp_path, aqm):
    """One CUBIC fills what its AQM lets it: the longer packets may wait, the longer they do."""
    ran = run(
        tmp_path,
        experiment(
            "waits",
            path=f"rate: 20 Mbit/s, rtt: 40 ms, buffer: 8 BDP, aqm: {aqm}, aqm_target: $target",
            flows="{cca: cubic, duration: 30 s}",
            more="warm_up: 10 s\nvary: {target: [5 ms, 20 ms, 80 ms]}",
        ),
    )
    assert ran.wrong() == {}
    waits_s = ran.set.runs.set_index("axis_target")["queue_delay_median_s"]
    assert waits_s["5 ms"] < waits_s["20 ms"] < waits_s["80 ms"]
    assert waits_s["80 ms"] > 0.04


def test_cake_drops_later_where_it_is_told_of_a_longer_round_trip(tmp_path):
    ran = run(
        tmp_path,
        experiment(
            "cake",
            path="rate: 20 Mbit/s, rtt: 40 ms, buffer: 8 BDP, aqm: cake, aqm_interval: $interval",
            flows="{cca: cubic, duration: 30 s}",
            more="warm_up: 10 s\nvary: {interval: [40 ms, 1 s]}",
        ),
    )
    assert ran.wrong() == {}
    waits_s = ran.set.runs.set_index("axis_interval")["queue_delay_median_s"]
    assert 2 * waits_s["40 ms"] < waits_s["1 s"]


@pytest.mark.parametrize("aqm", THRESHOLD_AQMS)
def test_codel_marks_what_has_waited_longer_than_its_threshold(tmp_path, aqm):
    """CUBIC halves its window at each mark, so that the threshold and not CoDel's 5 ms holds the queue."""
    text = experiment(
        "marked",
        path=f"rate: 20 Mbit/s, rtt: 10 ms, buffer: 8 BDP, aqm: {aqm}, ecn: true, ce_threshold: $threshold",
        flows="{cca: cubic, duration: 5 s}",
        more="warm_up: 1 s\nvary: {threshold: [0 s, 2 ms]}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}

    def told(threshold):
        queue = of_bottleneck(ran, f"threshold={threshold},r1").query("t_s > 1")
        return queue["backlog_bytes"].quantile(0.95) * 8 / 20e6, queue["drops"].diff().sum()

    (codel_s, _), (marked_s, drops) = told("0s"), told("2ms")
    assert drops == 0
    # A sender that halves its window for a mark has an echo of it first.
    runs = ran.set.groups.query("phase == -1 or phase_name == 'whole run'").set_index("cell_id")
    marks = runs.loc["threshold=2ms,r1", ["queue_marks", "ce_segments"]]
    assert 0 < marks["queue_marks"] <= marks["ce_segments"]
    # A frame of 0.6 ms may have come before the mark had its effect, a round trip later.
    assert marked_s < 0.004 < codel_s


def test_a_small_queue_behind_delays_is_measured_at_its_rate(tmp_path):
    """The probe's refills must be under way before its burst has arrived, else the queue runs dry between."""
    text = experiment(
        "pair",
        slice_="rtt_pair",
        path="rate: 100 Mbit/s, rtt: {h1: 61 ms, h2: 113 ms}, buffer: 0.1 BDP",
        flows="{cca: bbr1, count: 2, duration: 2 s}",
    )
    assert run(tmp_path, text).wrong() == {}


@pytest.fixture(scope="module")
def near_and_far(tmp_path_factory):
    """Flows of 20 and 200 ms: iperf3 needs some round trips before each of them begins."""
    return run(
        tmp_path_factory.mktemp("near-and-far"),
        experiment(
            "near_and_far",
            slice_="rtt_pair",
            path="rate: 20 Mbit/s, rtt: {h1: 20 ms, h2: 200 ms}, buffer: 1 BDP",
            flows="{cca: cubic, from: h1, duration: 8 s}, {cca: cubic, from: h2, duration: 8 s}",
        ),
    )


def test_flows_of_different_round_trips_together_get_no_more_than_the_link_carries(near_and_far):
    assert near_and_far.wrong() == {}
    (ran,) = near_and_far.set.runs.to_dict("records")
    assert 0.9 < ran["utilisation"] <= 1.0
    # In the seconds at either edge of the window each receiver's bytes are taken to arrive evenly.
    assert ran["goodput_steady_bps"] <= 1.01 * 20e6 * 1448 / 1514


def test_a_receivers_zero_is_the_round_trips_that_iperf3_takes_to_begin(near_and_far):
    """Handshake and cookie, parameters, the stream's handshake and cookie, and the start: four to five."""
    flows = near_and_far.set.flows
    trips = (flows["receiver_zero_s"] - flows["start_s"]) / flows["rtt_propagation_s"]
    assert trips.between(3.5, 6).all()
