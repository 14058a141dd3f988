"""Metrics of one cell, on small tables whose answers are plain."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import (
    NAN,
    behind_a_trace,
    bottleneck,
    cell,
    flow_rows,
    interval_rows,
    of,
    packet_rows,
    queue_rows,
    socket_rows,
)

from fabbbr import model
from fabbbr.units import Duration, Rate

METRICS_OF_RUNS = {
    "goodput_bps", "goodput_steady_bps", "throughput_bps", "link_rate_bps", "utilisation", "retransmits",
    "retransmit_ratio", "spurious_ratio", "rtt_median_s", "rtt_p95_s", "rtt_max_s", "queue_delay_median_s",
    "completion_max_s", "completion_mean_s", "convergence_s", "goodput_forward_bps", "goodput_reverse_bps",
    "injected_drops", "jain_flows", "jain_groups", "ping_idle_median_s", "queue_delay_p50_s",
    "queue_delay_p95_s", "queue_delay_p99_s", "queue_drops", "queue_median_bdp", "queue_median_bytes",
    "queue_median_fill", "queue_p95_bytes", "queue_reverse_drops", "queue_reverse_median_bytes",
    "queue_reverse_p95_bytes", "utilisation_forward", "utilisation_reverse",
    "ping_median_s", "ping_p95_s", "ping_p99_s", "ping_lost", "ping_loss_ratio",
    "datagram_loss_ratio", "datagram_reordered_ratio", "jitter_s", "pdv_p95_s", "video_startup_s",
    "video_stalled_s", "chunk_median_s", "chunk_p95_s",
}  # fmt: skip


def test_the_columns_are_those_of_table_runs_and_nothing_is_none_everywhere():
    assert of() == dict.fromkeys(METRICS_OF_RUNS)


# Throughput


def test_goodput_of_simultaneous_flows_is_the_sum_of_theirs():
    found = of(flow_rows(3e6, 4e6))
    assert found["goodput_bps"] == pytest.approx(7e6)
    assert found["throughput_bps"] == pytest.approx(7e6 * 1.25)


def test_goodput_of_flows_that_follow_one_another_with_pauses_counts_the_time_in_which_one_ran():
    """As in short transfers: 5 s each, begun at 0, 4 and 20 s, are 14 s of which nothing is idle."""
    found = of(flow_rows(4e6, 4e6, 4e6, starts=[0.0, 4.0, 20.0], seconds=5.0))
    assert found["goodput_bps"] == pytest.approx(3 * 4e6 * 5 / 14)


def test_goodput_of_spans_that_do_not_coincide_is_no_more_than_the_link_carries():
    """The far receiver began 0.25 s later and ended later: each had less than a sum of rates says."""
    ceiling, frame_bits = 8e6 * 1448 / 1514, 8 * 1514
    flows = flow_rows(0.6 * ceiling, 0.41 * ceiling, receiver_zero_s=[0.05, 0.25])
    assert of(flows)["utilisation"] == pytest.approx(1.01 * 80e6 / (10.2 * 8e6 + frame_bits))
    unknown = flows.assign(receiver_zero_s=[0.05, NAN], start_s=0.0)
    assert of(unknown)["utilisation"] < 1.01


def test_utilisation_counts_the_flows_through_the_bottleneck_alone():
    two = cell(flows=2)
    beside = model.CellLink(name="side", a="h3", b="h4")
    others = (*two.hosts, model.Host(name="h3"), model.Host(name="h4"))
    flows = (two.flows[0], two.flows[1].model_copy(update={"sender": "h3", "receiver": "h4"}))
    links = (*two.links, beside)
    changed = two.model_copy(update={"hosts": others, "links": links, "flows": flows})
    full = (8e6 + 8 * 1514 / 10) * 1448 / 1514
    assert of(flow_rows(0.9 * full, 0.9 * full), of_cell=changed)["utilisation"] == pytest.approx(0.9)


def test_goodput_of_staggered_flows_counts_the_whole_time():
    """Two flows of 10 s one after the other deliver at the rate of one."""
    assert of(flow_rows(4e6, 4e6, starts=[0.0, 10.0]))["goodput_bps"] == pytest.approx(4e6)


def test_utilisation_is_one_when_payload_fills_the_frames_and_a_full_bucket_at_the_start():
    full = (8e6 + 8 * 1514 / 10) * 1448 / 1514
    assert of(flow_rows(full))["utilisation"] == pytest.approx(1.0)


def test_a_flow_without_a_receiver_makes_the_sum_unknown_and_not_smaller():
    found = of(flow_rows(3e6, None))
    assert found["goodput_bps"] is None
    assert found["utilisation"] is None
    assert found["jain_flows"] is None


def test_where_the_rate_changes_utilisation_is_of_what_held_while_flows_ran():
    """8 Mbit/s, and 4 from 5 s on: over 10 s it is 6, and of a flow of 2 s at 4 s 6 too.

    The trunk is 20 ms long: so much later it comes to the receiver. The token bucket holds a frame, is full
    at first, and the step fills it.
    """
    frame_bits = 8 * 1514
    step = model.Step(at=Duration.parse("5 s"), link="trunk", rate=Rate.parse("4 Mbit/s"))
    for goodput_bps, begins_s, lasts_s, used in (
        (3e6, 0.02, 10.0, 3e6 / (6e6 + 2 * frame_bits / 10)),
        (3e6, 4.02, 2.0, 3e6 / (6e6 + 2 * frame_bits / 2)),
        (4e6, 6.02, 2.0, 4e6 / (4e6 + frame_bits / 2)),
        (8e6, 4.0, 1.02, 8e6 / (8e6 + frame_bits / 1.02)),
        (4.04e6, 5.0, 2.0, 4.04e6 / (4.04e6 + 2 * frame_bits / 2)),
    ):
        flows = flow_rows(goodput_bps * 1448 / 1514, receiver_zero_s=[begins_s], seconds=lasts_s)
        assert of(flows, of_cell=cell(steps=(step,)))["utilisation"] == pytest.approx(used)


def test_with_a_trace_utilisation_is_of_what_its_opportunities_carry():
    """Ten at once every 100 ms and nothing for the second half of a pass of 2 s: 0.6 Mbit/s of packets."""
    times_ms = [time for time in range(100, 1001, 100) for _ in range(10)] + [2000]
    carried_bps = 101 * 1500 * 8 / 2 * 1448 / 1500
    found = of(flow_rows(carried_bps, receiver_zero_s=[0.02]), of_cell=behind_a_trace(cell(), times_ms))
    assert found["utilisation"] == pytest.approx(1.0)


def test_steady_goodput_leaves_the_warm_up_out():
    found = of(flow_rows(1.0), interval_rows({0: [0, 0, 1000, 1000, 1000]}))
    assert found["goodput_steady_bps"] == pytest.approx(8000)


def test_steady_goodput_shares_out_an_interval_that_straddles_the_warm_up():
    intervals = pd.DataFrame(
        {"flow": [0], "stream": [1], "side": ["receiver"], "start_s": [0.0], "end_s": [4.0], "bytes": [4000]}
    )
    assert of(flow_rows(1.0), intervals)["goodput_steady_bps"] == pytest.approx(8000)


def test_steady_goodput_is_read_from_samples_where_there_are_any():
    """Intervals of iperf3 say no more than seconds, which made 101 % of a full link."""
    sockets = socket_rows(
        (0, "receiver", 5201, t, NAN, NAN, NAN, NAN, 32768, 1000.0 * max(t - 2.5, 0.0)) for t in range(6)
    )
    intervals = interval_rows({0: [0, 0, 500, 1000, 1000]})
    flows = flow_rows(1.0, seconds=5.0, received_bytes=2500.0)
    found = of(flows, intervals, sockets=sockets, of_cell=cell(warm_up="3 s"))
    assert found["goodput_steady_bps"] == pytest.approx(8 * 2000 / 2)


def test_a_run_that_ends_within_the_warm_up_has_no_steady_state():
    assert of(flow_rows(1.0), interval_rows({0: [1000, 1000]}))["goodput_steady_bps"] is None


def test_link_rate_is_the_slope_of_the_counter_while_flows_run():
    samples = [
        (-1.0, 0, 0, 0),
        (0.0, 0, 1000, 0),
        (5.0, 0, 6000, 0),
        (10.0, 0, 11000, 0),
        (12.0, 0, 11000, 0),
    ]
    assert of(flow_rows(1e3), queues=bottleneck(samples))["link_rate_bps"] == pytest.approx(8000)


def test_a_counter_that_was_reset_gives_no_rate_and_no_drops():
    found = of(flow_rows(1e3), queues=bottleneck([(0.0, 0, 1000, 7), (1.0, 0, 10, 2)]))
    assert found["link_rate_bps"] is None
    assert found["queue_drops"] is None


# Retransmission


def test_retransmit_ratio_is_over_all_bytes_on_the_wire():
    """Both of the last sample of each sender; ss prints no count of none."""
    sockets = socket_rows(
        [
            (0, "sender", 20001, 1.0, 0.04, 1000, 50_000, NAN),
            (0, "sender", 20001, 2.0, 0.04, 1000, 100_000, NAN),
            (0, "sender", 20002, 2.0, 0.04, 1000, 100_000, NAN),
            (0, "receiver", 5201, 2.0, 0.04, 1000, 999_999, NAN),
        ]
    )
    sockets["bytes_retrans"] = [1_000, 20_000, NAN, 999_999]
    found = of(flow_rows(1e6, retransmits=20.0), sockets=sockets)
    assert found["retransmits"] == 20
    assert found["retransmit_ratio"] == pytest.approx(20 / 200)


def test_what_is_sent_again_after_the_last_sample_is_no_share_of_what_was_sent_before():
    """A flow of 2 s, sampled each second, that sends one in ten again, also after the sample at 1 s."""
    sockets = socket_rows([(0, "sender", 20001, 1.0, 0.04, 1000, 100_000, NAN)])
    sockets["bytes_retrans"] = 10_000
    assert of(flow_rows(1e6, retransmits=20.0), sockets=sockets)["retransmit_ratio"] == pytest.approx(0.1)


def test_a_transfer_that_was_over_before_ss_saw_all_of_it_counts_whole():
    """60 kB with 14 segments sent again, of which ss saw three segments; the other goes on."""
    sockets = socket_rows(
        [
            (0, "sender", 20001, 0.1, 0.04, 1448, 3 * 1448, NAN),
            (1, "sender", 20002, 0.1, 0.04, 1448, 100 * 1448, NAN),
        ]
    )
    flows = flow_rows(1e6, 1e6, retransmits=[14.0, 6.0], completion_s=[0.05, NAN])
    flows["received_bytes"] = [60_000.0, 90_000.0]
    sockets["bytes_retrans"] = [2 * 1448, 6 * 1448]
    ratio = of(flows, sockets=sockets, of_cell=cell(flows=2))["retransmit_ratio"]
    assert ratio == pytest.approx(20 / (60_000 / 1448 + 14 + 100))


def test_no_retransmission_is_zero_and_an_absent_count_is_none():
    sockets = socket_rows([(0, "sender", 20001, 1.0, 0.04, 1000, 50_000, NAN)])
    assert of(flow_rows(1e6), sockets=sockets)["retransmit_ratio"] == 0
    untold = of(flow_rows(1e6, retransmits=NAN), sockets=sockets)
    assert (untold["retransmits"], untold["retransmit_ratio"]) == (None, 0)
    assert of(flow_rows(1e6))["retransmit_ratio"] is None


def test_segments_that_a_receiver_had_already_are_a_share_of_all_that_were_sent():
    """Of the last sample of each sender; ss prints no count of none."""
    sockets = socket_rows([(0, side, port, t_s) for side, port, t_s in (
        ("sender", 1, 1.0), ("sender", 1, 2.0), ("sender", 2, 2.0), ("receiver", 5201, 2.0))])  # fmt: skip
    sockets["sent_segments"] = [100.0, 300.0, 100.0, 9.0]
    sockets["dsack_segments"] = [1.0, 8.0, NAN, 5.0]
    assert of(flow_rows(1e6), sockets=sockets)["spurious_ratio"] == pytest.approx(8 / 400)
    sockets["dsack_segments"] = NAN
    assert of(flow_rows(1e6), sockets=sockets)["spurious_ratio"] == 0
    sockets["sent_segments"] = NAN
    assert of(flow_rows(1e6), sockets=sockets)["spurious_ratio"] is None


# Round-trip time


def test_rtt_is_over_all_samples_of_all_senders():
    samples = [(0, "sender", 1, t, 0.040 + 0.001 * t, 1448, 1, NAN) for t in range(101)]
    noise = [(0, "receiver", 1, 1.0, 9.0, 1448, 1, NAN)]
    found = of(flow_rows(1e6), sockets=socket_rows(samples + noise))
    assert found["rtt_median_s"] == pytest.approx(0.090)
    assert found["rtt_p95_s"] == pytest.approx(0.135)
    assert found["rtt_max_s"] == pytest.approx(0.140)


def test_delays_of_packets_are_those_of_data_that_left_the_first_bottleneck():
    data = [("bottleneck", "trunk", 0.0, 0.001 * n) for n in range(101)]
    others = [
        ("bottleneck", "trunk", NAN, 9.0),  # a control connection
        ("bottleneck", "trunk", 0.0, NAN),  # dropped
        ("bottleneck", "second", 0.0, 9.0),
        ("bottleneck_reverse", "trunk", 0.0, 9.0),
    ]
    found = of(flow_rows(1e6), packets=packet_rows(data + others))
    delays = [found[f"queue_delay_p{percent}_s"] for percent in (50, 95, 99)]
    assert delays == pytest.approx([0.050, 0.095, 0.099])


def test_queue_delay_subtracts_the_propagation_of_each_flow():
    sockets = socket_rows(
        [(0, "sender", 1, 1.0, 0.045, 1448, 1, NAN), (1, "sender", 2, 1.0, 0.055, 1448, 1, NAN)]
    )
    found = of(flow_rows(1e6, 1e6), sockets=sockets)
    assert found["queue_delay_median_s"] == pytest.approx(0.005)


# Queue


def test_occupancy_is_in_bytes_bdp_and_share_of_the_buffer():
    samples = [
        (float(t), backlog, t * 100, 0) for t, backlog in enumerate([0, 20_000, 20_000, 20_000, 60_000])
    ]
    found = of(flow_rows(1e3), queues=bottleneck([(-1.0, 99_999, 0, 0), *samples, (11.0, 99_999, 500, 0)]))
    assert found["queue_median_bytes"] == 20_000
    assert found["queue_median_bdp"] == pytest.approx(0.5)
    assert found["queue_median_fill"] == pytest.approx(0.25)
    assert found["queue_p95_bytes"] == pytest.approx(52_000)


def test_fill_is_unknown_when_the_buffer_changes_and_bdp_is_not():
    step = model.Step(at=Duration.parse("5 s"), link="trunk", buffer_bytes=160_000)
    found = of(flow_rows(1e3), queues=bottleneck([(0.0, 4000, 0, 0)]), of_cell=cell(steps=(step,)))
    assert found["queue_median_fill"] is None
    assert found["queue_median_bdp"] == pytest.approx(0.1)


def test_drops_of_the_queue_and_of_the_injected_loss_are_kept_apart():
    queues = pd.concat(
        [
            bottleneck([(0.0, 0, 0, 5), (10.0, 0, 0, 9)]),
            queue_rows(
                [("w1", "w1-eth1", "1:", t, 0, 0, d, "loss", "trunk") for t, d in ((0.0, 0), (10.0, 33))]
            ),
            queue_rows(
                [("s9", "s9-eth2", "1:", t, 0, 0, d, "bottleneck", "other") for t, d in ((0.0, 0), (9.0, 77))]
            ),
        ]
    )
    found = of(flow_rows(1e3), queues=queues)
    assert (found["queue_drops"], found["injected_drops"]) == (4, 33)


# Completion


def test_completion_is_known_when_every_flow_that_has_a_size_completed():
    def completion(*seconds, sized):
        flows = flow_rows(*[1.0] * len(seconds), completion_s=list(seconds))
        found = of(flows, of_cell=cell(flows=len(seconds), sized=sized))
        return found["completion_mean_s"], found["completion_max_s"]

    assert completion(2.0, 4.0, sized=(0, 1)) == (3.0, 4.0)
    assert completion(2.0, NAN, sized=(0, 1)) == (None, None)
    # Short flows beside a long one that has no size.
    assert completion(2.0, NAN, 4.0, sized=(0, 2)) == (3.0, 4.0)
    assert completion(NAN, sized=()) == (None, None)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=4), st.floats(0.5, 100))
def test_all_metrics_are_finite_or_none(rates, seconds):
    found = of(flow_rows(*rates, seconds=seconds))
    assert all(value is None or math.isfinite(value) for value in found.values())


def test_utilisation_is_unknown_when_each_direction_has_a_queue():
    one_way = cell()
    both_ways = one_way.bottleneck.model_copy(update={"both_directions": True})
    links = (one_way.trunk.model_copy(update={"bottleneck": both_ways}),)
    found = of(flow_rows(3e6), of_cell=one_way.model_copy(update={"links": links}))
    assert found["utilisation"] is None
