"""Metrics of pings, datagrams, videos and either direction, on small tables whose answers are plain."""

import pytest
from measured import NAN, cell, chunk_rows, flow_rows, interval_rows, of, ping_rows, queue_rows

from fabbbr import model
from fabbbr.units import Duration, Rate

# Pings and directions


def test_pings_count_before_the_load_and_under_it():
    trips = [(0.5, 0.02), (1.5, 0.02), (3.0, 0.05), (4.0, 0.09), (5.0, NAN), (11.5, 0.07), (13.0, 0.5)]
    found = of(flow_rows(1e6, starts=[2.0]), pings=ping_rows(*trips))
    assert found["ping_idle_median_s"] == pytest.approx(0.02)
    assert found["ping_median_s"] == pytest.approx(0.07)  # of 50, 70 and 90 ms; the last came after the flow
    assert found["ping_p99_s"] == pytest.approx(0.0896)
    assert found["ping_lost"] == 1
    assert found["ping_loss_ratio"] == 1 / 4


def test_where_no_ping_is_answered_all_are_lost_and_no_round_trip_is_known():
    found = of(flow_rows(1e6, starts=[2.0]), pings=ping_rows((3.0, NAN), (4.0, NAN)))
    assert (found["ping_loss_ratio"], found["ping_p95_s"]) == (1.0, None)
    assert of(flow_rows(1e6))["ping_loss_ratio"] is None


# Datagrams and videos


def kinds(*of_flows):
    """A cell whose flows are of these kinds, each as what a flow of that kind has."""
    made = cell(flows=len(of_flows))
    pairs = zip(made.flows, of_flows, strict=True)
    return made.model_copy(update={"flows": tuple(one.model_copy(update=more) for one, more in pairs)})


CALL = {"udp": model.Datagrams(rate=Rate.parse("100 kbit/s"), packet_bytes=200), "cca": None}
VIDEO = {
    "video": model.Video(
        bitrate=Rate.parse("4 Mbit/s"), chunk=Duration.parse("2 s"), buffer=Duration.parse("8 s")
    )
}


def test_of_datagrams_the_share_that_was_lost_counts_those_of_all_flows():
    flows = flow_rows(
        1e6,
        1e6,
        1e6,
        datagrams_sent=[NAN, 1000, 3000],
        datagrams_lost=[NAN, 0, 40],
        datagrams_reordered=[NAN, 9, 90],
        jitter_s=[NAN, 0.002, 0.004],
        pdv_p95_s=[NAN, 0.01, 0.03],
    )
    found = of(flows, of_cell=kinds({}, CALL, CALL))
    assert found["datagram_loss_ratio"] == pytest.approx(40 / 4000)
    assert found["datagram_reordered_ratio"] == pytest.approx(99 / 3960)
    assert found["jitter_s"] == pytest.approx(0.003)
    assert found["pdv_p95_s"] == pytest.approx(0.02)


def test_what_a_flow_of_datagrams_does_not_tell_is_unknown_and_not_nothing():
    flows = flow_rows(1e6, 1e6, datagrams_sent=[1000, NAN], datagrams_lost=[0, NAN], jitter_s=[0.002, NAN])
    found = of(flows, of_cell=kinds(CALL, CALL))
    unknown = ("datagram_loss_ratio", "datagram_reordered_ratio", "jitter_s")
    assert [found[name] for name in unknown] == [None, None, None]


def test_fairness_is_among_flows_that_take_what_they_can_get():
    shares = {0: [500] * 10, 1: [500] * 10, 2: [10] * 10, 3: [100] * 10}
    found = of(
        flow_rows(4e3, 4e3, 80, 800, groups=["a", "b", "call", "film"]), interval_rows(shares),
        of_cell=kinds({"group": "a"}, {"group": "b"}, CALL, VIDEO),
    )  # fmt: skip
    assert (found["jain_flows"], found["jain_groups"], found["convergence_s"]) == (1.0, 1.0, 0.0)
    alone = of(flow_rows(4e3, 80, groups=["a", "call"]), of_cell=kinds({}, CALL))
    assert (alone["jain_flows"], alone["jain_groups"]) == (None, None)


def test_videos_say_how_soon_they_played_and_how_long_they_stood_still():
    flows = flow_rows(1e6, 1e6, 1e6, video_startup_s=[1.0, NAN, 2.0], video_stalled_s=[0.5, NAN, 3.0])
    found = of(flows, of_cell=kinds(VIDEO, {}, VIDEO))
    assert (found["video_startup_s"], found["video_stalled_s"]) == (1.5, 3.5)


def test_chunks_are_timed_from_when_they_are_asked_for_and_only_if_they_came():
    chunks = chunk_rows((0.0, 1.0), (4.0, 4.5), (8.0, 11.0), (12.0, NAN))
    found = of(flow_rows(1e6), of_cell=kinds(VIDEO), chunks=chunks)
    assert (found["chunk_median_s"], found["chunk_p95_s"]) == (1.0, pytest.approx(2.8))
    none = of(flow_rows(1e6), of_cell=kinds(VIDEO), chunks=chunk_rows((0.0, NAN)))
    assert (none["chunk_median_s"], none["chunk_p95_s"]) == (None, None)


def both_ways(**more):
    there, back = cell(flows=2).flows
    back = back.model_copy(update={"sender": "h2", "receiver": "h1"})
    access, trunk = cell().links
    queue = trunk.bottleneck.model_copy(update={"both_directions": True} | more)
    links = (access, trunk.model_copy(update={"bottleneck": queue}))
    return cell(flows=2).model_copy(update={"flows": (there, back), "links": links})


def most_bps(rate_bps):
    """Of TCP payload in 10 s, with the frame that is in a full token bucket."""
    return (rate_bps + 8 * 1514 / 10) * 1448 / 1514


def test_each_direction_has_its_goodput_and_its_queue():
    queues = queue_rows([("s1", "s1-eth1", "1:", 5.0, 4000, 0, 0, "bottleneck_reverse", "trunk")])
    found = of(flow_rows(3e6, 1e6), queues=queues, of_cell=both_ways())
    assert (found["goodput_forward_bps"], found["goodput_reverse_bps"]) == (
        pytest.approx(3e6),
        pytest.approx(1e6),
    )
    assert found["utilisation_reverse"] == pytest.approx(1e6 / most_bps(8e6))
    assert found["queue_reverse_median_bytes"] == 4000


def test_what_does_not_cross_the_first_bottleneck_is_no_load_of_it_either_way():
    there, back = both_ways().flows
    aside = there.model_copy(update={"index": 2, "sender": "h3", "receiver": "h4"})
    side = model.CellLink(name="side", a="h3", b="h4")
    lot = both_ways().model_copy(update={"flows": (there, back, aside), "links": (*both_ways().links, side)})
    found = of(flow_rows(3e6, 1e6, 9e6), of_cell=lot)
    assert found["goodput_forward_bps"] == pytest.approx(12e6)
    assert found["utilisation_forward"] == pytest.approx(3e6 / most_bps(8e6))


def test_a_way_back_of_its_own_is_used_by_its_own_rate():
    slow = model.LinkWay(
        rate=Rate.parse("2 Mbit/s"), buffer_bytes=20_000, buffer_asked="2 BDP", bdp_bytes=10_000
    )
    found = of(flow_rows(3e6, 1e6), of_cell=both_ways(reverse=slow))
    assert found["utilisation_forward"] == pytest.approx(3e6 / most_bps(8e6))
    assert found["utilisation_reverse"] == pytest.approx(1e6 / most_bps(2e6))


def test_flows_one_way_have_no_direction_of_their_own():
    found = of(flow_rows(3e6, 1e6))
    assert (found["goodput_forward_bps"], found["goodput_reverse_bps"]) == (None, None)


def test_udp_has_no_share_of_what_tcp_can_fill_and_no_retransmissions():
    tcp, other = cell(flows=2).flows
    udp = other.model_copy(
        update={"cca": None, "udp": model.Datagrams(rate=Rate.parse("1 Mbit/s"), packet_bytes=1500)}
    )
    flows = flow_rows(3e6, 1e6, cca=["bbr1", None], retransmits=[4.0, NAN])
    found = of(flows, of_cell=cell(flows=2).model_copy(update={"flows": (tcp, udp)}))
    assert found["goodput_bps"] == pytest.approx(4e6)
    assert found["utilisation"] is None
    assert found["retransmits"] == 4
