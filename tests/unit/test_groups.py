"""What each group got in each phase, on small cells whose answers are plain."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import EMPTY, NAN, behind_a_trace, carrying

from fabbbr import model
from fabbbr.capacity import RateOverTime
from fabbbr.physics import burst_bytes
from fabbbr.units import Duration, Frequency, Rate, Ratio, Size
from fabbbr_analysis.after_steps import on_average
from fabbbr_analysis.arrivals import amounts_between, union_s
from fabbbr_analysis.groups import of_groups
from fabbbr_analysis.phases import phases_of

CEILING = 1448 / 1514


def flow(index, group="a", start="0 s", duration="20 s", size=None, sender="h1"):
    return model.Flow(
        index=index, group=group, cca="cubic", sender=sender, receiver="h2", start=Duration.parse(start),
        duration=None if size else Duration.parse(duration), size=Size.parse(size) if size else None,
        rtt=Duration.parse("40 ms"),
    )  # fmt: skip


def step(at, rate=None, rtt=None, loss=None):
    return model.Step(
        at=Duration.parse(at), link="trunk", rate=rate and Rate.parse(rate), rtt=rtt and Duration.parse(rtt),
        loss=loss and model.Loss(rate=Ratio.parse(loss)),
    )  # fmt: skip


def cell(*flows, warm_up="4 s", **more):
    return carrying(*flows, warm_up=warm_up, **more)


def came(of_cell, bytes_by):
    """Tables in which flow i has ``bytes_by[i](t)`` at t [s], seen every 100 ms; zero at its start."""
    flows, sockets = [], []
    for each in of_cell.flows:
        start = each.start.seconds
        lasts = each.duration.seconds if each.duration else bytes_by[each.index][1]
        curve = bytes_by[each.index] if each.duration else bytes_by[each.index][0]
        total = float(curve(lasts))
        flows.append(
            {
                "flow": each.index, "group": each.group, "cca": each.cca, "start_s": start,
                "receiver_zero_s": start, "received_bytes": total, "receiver_s": lasts, "retransmits": 0.0,
                "completion_s": lasts if each.size else NAN,
            }
        )  # fmt: skip
        for t in np.arange(0.1, lasts, 0.1):
            common = {"flow": each.index, "t_s": start + t, "mss_bytes": 1448.0}
            ends = {"local_port": 5201, "peer_port": 32768 + each.index}
            sockets.append(common | ends | {"side": "receiver", "bytes_received": float(curve(t))})
            ends = {"local_port": 32768 + each.index, "peer_port": 5201}
            sent = {"bytes_sent": float(curve(t)), "rtt_s": 0.050 + 0.01 * each.index}
            sockets.append(common | ends | {"side": "sender", **sent})
    columns = ["flow", "side", "t_s", "local_port", "peer_port", "rtt_s", "mss_bytes", "bytes_sent",
               "bytes_received", "retrans_segments", "bytes_acked", "sacked_segments",
               "bytes_retrans", "delivered_ce_segments", "sent_segments", "dsack_segments"]  # fmt: skip
    queues = pd.DataFrame(
        columns=["node", "interface", "handle", "t_s", "backlog_bytes", "drops", "ecn_marks", "role", "link"]
    )
    return dataclasses.replace(
        EMPTY,
        flows=pd.DataFrame(flows),
        sockets=pd.DataFrame(sockets, columns=columns),
        queues=queues,
    )


def rows(of_cell, *bytes_by, queue=None):
    tables = came(of_cell, bytes_by)
    if queue is not None:
        seen = [
            {"node": "s1", "interface": "s1-eth2", "handle": "1:", "t_s": t, "role": "bottleneck",
             "link": "trunk", **queue(t)}
            for t in np.arange(0, 20, 0.1)
        ]  # fmt: skip
        tables = dataclasses.replace(tables, queues=pd.DataFrame(seen))
    return pd.DataFrame(of_groups(tables, of_cell))


def steadily(bps):
    return lambda t: bps / 8 * t


# Phases


def phases(of_cell, end_s=20.2):
    """Where all flows end at once."""
    return phases_of(of_cell, {flow.index: end_s for flow in of_cell.flows})


def names(of_cell, end_s=20.2):
    return [phase.name for phase in phases(of_cell, end_s)]


def test_without_steps_there_are_start_up_and_steady_state():
    found = phases(cell(flow(0)))
    assert [(each.name, each.start_s, each.end_s) for each in found] == [
        ("whole run", 0, 20.2), ("start-up", 0, 4), ("steady state", 4, 20),
    ]  # fmt: skip


def test_each_step_begins_a_phase_named_by_what_it_makes_of_the_link():
    stepped = cell(flow(0), steps=[step("10 s", "2 Mbit/s"), step("15 s", "8 Mbit/s")])
    assert names(stepped)[1:] == [
        "start-up", "after start-up, until 10 s: 8 Mbit/s", "10 to 15 s: 2 Mbit/s", "from 15 s: 8 Mbit/s",
    ]  # fmt: skip


def test_a_phase_before_a_step_of_the_round_trip_says_what_it_was():
    later = model.Step(at=Duration.parse("10 s"), link="trunk", rtt=Duration.parse("60 ms"))
    of_cell = cell(flow(0), steps=[later])

    def delayed(one_way):
        delay = {"delay": one_way and Duration.parse(one_way)}
        return of_cell.model_copy(
            update={"links": tuple(link.model_copy(update=delay) for link in of_cell.links)}
        )

    assert names(delayed("15 ms"))[2:] == [
        "after start-up, until 10 s: RTT of trunk 30 ms", "from 10 s: RTT of trunk 60 ms",
    ]  # fmt: skip
    assert names(delayed(None))[2] == "after start-up, until 10 s: RTT of trunk 0 ns"


def test_a_warm_up_that_reaches_to_the_first_step_leaves_half_of_the_time_before_it():
    whole, start_up, then, _ = phases(cell(flow(0), steps=[step("10 s", "2 Mbit/s")], warm_up="10 s"))
    assert [start_up.start_s, start_up.end_s, then.end_s, whole.end_s] == [0, 5, 10, 20.2]


def test_what_follows_start_up_has_one_name_however_long_the_warm_up_is():
    later = (flow(0), flow(1, "b", start="12 s", duration="8 s"))
    assert names(cell(*later, warm_up="4 s")) == names(cell(*later, warm_up="8 s"))


def test_a_group_that_comes_later_or_goes_earlier_begins_a_phase():
    later = cell(flow(0), flow(1, "b", start="8 s", duration="6 s"))
    assert names(later)[1:] == ["start-up", "after start-up, until 8 s", "8 to 14 s", "from 14 s"]
    # Flows that follow one another within a group make none.
    staggered = cell(flow(0), *(flow(n, "b", start=f"{3 + n} s", size="1 MB") for n in range(1, 5)))
    assert names(staggered) == ["whole run", "start-up", "steady state"]


def test_what_was_to_come_after_the_end_of_a_run_is_no_phase():
    """A run may end before its time: a group that was to leave or come later makes none."""
    later = cell(flow(0), flow(1, "b", start="8 s", duration="6 s"))
    assert names(later, 11.0)[1:] == ["start-up", "after start-up, until 8 s", "from 8 s"]
    assert names(cell(flow(0)), 11.0) == ["whole run", "start-up", "steady state"]
    for found in (phases(later, 11.0), phases(later, 5.0), phases(cell(flow(0)), 2.0)):
        assert all(each.start_s < each.end_s for each in found)


@pytest.mark.parametrize("random", [True, False])
def test_the_tail_of_what_was_timed_is_no_phase_beside_transfers_either(random):
    """A full queue of 600 ms: the last byte comes 3 s after the last one was sent."""
    page = flow(1, "b", start="2 s", size="1 MB").model_copy(update={"at_random": random})
    times = {"start": Duration(0), "duration": Duration.parse("20 s")}
    group = model.Arrivals(group="b", rate=Frequency.parse("1 /s"), sizes="1 MB", **times)
    beside = cell(flow(0), page).model_copy(update={"arrivals": (group,) if random else ()})
    *_, last = found = phases_of(beside, {0: 23.0, 1: 22.0 if random else 20.5})
    assert [each.name for each in found] == ["whole run", "start-up", "steady state"]
    assert (found[0].end_s, last.end_s) == (23.0, 20 if random else 20.5)


def test_what_transfers_send_after_all_that_was_timed_is_a_phase():
    """But not one longer than they take."""
    beside = cell(flow(0), flow(1, "b", start="2 s", size="30 MB"))
    *_, last = phases_of(beside, {0: 23.0, 1: 26.0})
    assert (last.name, last.end_s) == ("from 20 s", 26.0)


@pytest.mark.parametrize(("apart_s", "until_s"), [(1, 100), (1, 61), (2, 200), (0.1, 30)])
def test_a_recording_of_rates_is_no_list_of_phases(apart_s, until_s):
    instants = np.arange(apart_s, until_s, apart_s)
    many = [step(f"{at:g} s", f"{1 + n % 2} Mbit/s") for n, at in enumerate(instants)]
    assert names(cell(flow(0, duration="200 s"), steps=many), 200.0) == [
        "whole run",
        "start-up",
        "steady state",
    ]


def lossless_at_first(of_cell):
    """As planned where a step has a loss."""
    lossless = of_cell.trunk.model_copy(update={"loss": model.Loss(rate=Ratio(0))})
    links = tuple(lossless if link.name == lossless.name else link for link in of_cell.links)
    return of_cell.model_copy(update={"links": links})


def test_steps_that_come_one_upon_another_begin_one_phase_named_by_what_they_leave():
    """Two handovers: for a moment nothing gets through, and then the path is another one."""
    handovers = [
        step("8 s", rtt="60 ms", loss="100 %"),
        step("8.1 s", loss="0 %"),
        step("14 s", "2 Mbit/s", loss="100 %"),
        step("14.2 s", loss="0 %"),
        step("14.4 s", "4 Mbit/s"),
    ]
    of_cell = lossless_at_first(cell(flow(0), steps=handovers))
    *_, before, first, second = phases(of_cell)
    assert [(each.start_s, each.steady_from_s, each.end_s) for each in (before, first, second)] == [
        (4, 4, 8), (8, 8.1, 14), (14, 14.4, 20),
    ]  # fmt: skip
    assert [each.name for each in (before, first, second)] == [
        "after start-up, until 8 s: 8 Mbit/s, RTT of trunk 40 ms",
        "8 to 14 s: 8 Mbit/s, RTT of trunk 60 ms, loss 100 % until 8.1 s",
        "from 14 s: 4 Mbit/s, RTT of trunk 60 ms, loss 100 % until 14.2 s, 2 Mbit/s until 14.4 s",
    ]


def test_a_phase_after_an_outage_says_when_it_ended_and_one_that_follows_it_that_it_is_over():
    short, long = (
        lossless_at_first(cell(flow(0), steps=[step("8 s", loss="100 %"), step(end, loss="0 %")]))
        for end in ("8.5 s", "12 s")
    )
    assert names(short)[2:] == ["after start-up, until 8 s: no loss", "from 8 s: loss 100 % until 8.5 s"]
    assert names(long)[3:] == ["8 to 12 s: loss 100 %", "from 12 s: no loss"]


def test_a_delay_is_told_from_propagation_as_steps_have_it_over_the_whole_run_too():
    """10 ms of queue throughout; what comes soon after the step is still of the path before."""
    of_cell = cell(flow(0), steps=[step("10 s", rtt="140 ms")])
    tables = came(of_cell, [steadily(4e6)])
    times = tables.sockets["t_s"]
    tables.sockets["rtt_s"] = 0.05 + 0.1 * (times >= 10.15)
    found = pd.DataFrame(of_groups(tables, of_cell)).set_index("phase_name")["queue_delay_median_s"]
    assert found.to_numpy() == pytest.approx(np.full(len(found), 0.01))


def test_what_steps_cost_on_average_is_of_all_steps_or_nothing():
    after = [{"recovery_s": 0.5, "queue_settled_s": 1.0}, {"recovery_s": 1.5, "queue_settled_s": None}]
    assert on_average(after) == {"recovery_s": 1.0, "queue_settled_s": None}
    assert on_average([]) == {"recovery_s": None, "queue_settled_s": None}


# Shares and goodput


def test_each_group_has_its_own_goodput_and_share_in_each_phase():
    found = rows(cell(flow(0), flow(1, "b"), flow(2, "b")), steadily(4e6), steadily(1e6), steadily(1e6))
    steady = found[found["phase_name"] == "steady state"].set_index("group")
    assert steady["goodput_bps"].to_dict() == pytest.approx({"a": 4e6, "b": 2e6})
    assert steady["goodput_per_flow_bps"].to_dict() == pytest.approx({"a": 4e6, "b": 1e6})
    assert steady["share"].to_dict() == pytest.approx({"a": 2 / 3, "b": 1 / 3})
    assert steady["fair_share"].to_dict() == pytest.approx({"a": 1 / 3, "b": 2 / 3})
    assert steady["rtt_median_s"].to_dict() == pytest.approx({"a": 0.050, "b": 0.065})
    assert steady["queue_delay_median_s"]["a"] == pytest.approx(0.010)


def test_what_is_still_on_its_way_of_a_group_that_has_ended_takes_no_share_of_the_next_phase():
    """A call goes on when a download is over, whose last bytes come a tenth of a second later."""
    of_cell = cell(
        flow(0, "call"), flow(1, "download", duration="8 s"), steps=[step("8 s", "4 Mbit/s")], warm_up="2 s"
    )
    late = of_cell.flows[1].model_copy(update={"duration": Duration.parse("8.1 s")})
    tables = came(
        of_cell.model_copy(update={"flows": (of_cell.flows[0], late)}), [steadily(1e5), steadily(6e6)]
    )
    found = pd.DataFrame(of_groups(tables, of_cell))
    before, after = (found[found["phase_start_s"] == start_s].set_index("group") for start_s in (2.0, 8.0))
    assert before["share"].to_dict() == pytest.approx({"call": 0.1 / 6.1, "download": 6 / 6.1})
    assert after["n_flows"].to_dict() == {"call": 1, "download": 0}
    assert after["received_bytes"]["download"] > 0
    assert after["share"].isna().all()


@given(st.lists(st.floats(1e3, 4e6), min_size=2, max_size=5), st.floats(0.5, 9.5))
def test_what_came_in_the_phases_is_what_came_and_shares_add_up_to_one(rates, warm_up):
    of_cell = cell(*(flow(n, f"g{n}") for n in range(len(rates))), warm_up=f"{warm_up:.3f} s")
    found = rows(of_cell, *map(steadily, rates))
    by_phase = found.groupby("phase")
    assert by_phase["share"].sum().tolist() == pytest.approx([1.0] * 3)
    whole, *parts = by_phase["received_bytes"].sum()
    assert sum(parts) == pytest.approx(whole, abs=len(rates) * 2)
    assert (found["goodput_bps"] <= max(rates) * 1.001).all()


def test_a_group_of_flows_that_follow_one_another_is_no_faster_than_its_link():
    """Ten transfers, each at 6 of 8 Mbit/s: summed they would be 60."""
    short = [flow(n, "short", start=f"{n} s", size="600 kB") for n in range(1, 11)]
    of_cell = cell(flow(0, "long"), *short)
    found = rows(of_cell, steadily(1e6), *[(steadily(6e6), 0.8)] * 10)
    (whole,) = found[(found["group"] == "short") & (found["phase"] == 0)].to_dict("records")
    assert whole["goodput_bps"] == pytest.approx(6e6)
    assert whole["active_s"] == pytest.approx(8.0)
    assert whole["completed"] == 10
    assert whole["completion_median_s"] == pytest.approx(0.8)
    assert whole["slowdown_median"] == pytest.approx(0.8 / ideal_s(8e6))


def ideal_s(rate_bps, rtt_s=0.040, burst_bytes=1514):
    """Of 600 kB: SYN, answer, the way of the last byte, and what the link cannot send at once."""
    return 1.5 * rtt_s + 8 * (600e3 / CEILING - burst_bytes) / rate_bps


def slowdown(hz=1000, steps=(), **more):
    """Of 600 kB that begin after 2 s and take 0.8 s, beside a long flow."""
    of_cell = cell(flow(0, "long"), flow(1, "short", start="2 s", size="600 kB"), steps=steps)
    of_cell = of_cell.model_copy(update=more)
    tables = came(of_cell, [steadily(1e6), (steadily(6e6), 0.8)])
    tables = dataclasses.replace(tables, cells=pd.DataFrame({"timer_hz": [hz]}))
    (whole,) = [row for row in of_groups(tables, of_cell) if (row["group"], row["phase"]) == ("short", 0)]
    return whole["slowdown_median"]


def rtt_step(at, rtt):
    return model.Step(at=Duration.parse(at), link="trunk", rtt=Duration.parse(rtt))


IDEALS = {
    "faster for a while": ([step("2.2 s", "16 Mbit/s"), step("2.4 s", "8 Mbit/s")], 16e6, 0.040),
    "faster before": ([step("1 s", "16 Mbit/s"), step("1.5 s", "8 Mbit/s")], 8e6, 0.040),
    "slower for a while": ([step("2.2 s", "4 Mbit/s"), step("2.4 s", "8 Mbit/s")], 8e6, 0.040),
    "slower before and after": ([step("1 s", "4 Mbit/s"), step("2.9 s", "8 Mbit/s")], 4e6, 0.040),
    "shorter for a while": ([rtt_step("2.2 s", "10 ms"), rtt_step("2.4 s", "40 ms")], 8e6, 0.010),
    "longer for a while": ([rtt_step("2.2 s", "90 ms"), rtt_step("2.4 s", "40 ms")], 8e6, 0.040),
    "longer before and after": ([rtt_step("1 s", "90 ms"), rtt_step("2.9 s", "40 ms")], 8e6, 0.090),
    "shorter before": ([rtt_step("1 s", "10 ms"), rtt_step("1.5 s", "40 ms")], 8e6, 0.040),
}


@pytest.mark.parametrize("how", IDEALS)
def test_the_ideal_of_a_transfer_has_the_best_that_the_path_is_meanwhile(how):
    steps, rate_bps, rtt_s = IDEALS[how]
    burst_bytes = max(1514, rate_bps / 8000)
    assert slowdown(steps=steps) == pytest.approx(0.8 / ideal_s(rate_bps, rtt_s, burst_bytes))


def test_a_bucket_of_a_slow_tick_lets_more_pass_at_once():
    assert slowdown(hz=100) == pytest.approx(0.8 / ideal_s(8e6, burst_bytes=10_000))
    assert slowdown(hz=1) == pytest.approx(0.8 / 0.060)


def test_with_offloads_the_bucket_stays_as_large_as_the_fastest_rate_made_it():
    before = [step("0.5 s", "32 Mbit/s"), step("1 s", "8 Mbit/s")]
    assert slowdown(steps=before) == pytest.approx(0.8 / ideal_s(8e6))
    assert slowdown(steps=before, offloads=True) == pytest.approx(0.8 / ideal_s(8e6, burst_bytes=4000))


@pytest.mark.parametrize(
    ("times_ms", "least_s"),
    [
        # The bottleneck is at the sender: SYN, its answer 40 ms later, 415 packets, and 20 ms of their way.
        (range(1, 1001), 0.040 + 0.414 + 0.020),
        (range(10, 1001, 10), 0.040 + 4.14 + 0.020),
        # The SYN waits for 30 ms, and 40 ms after that its data is in time for 415, or comes too late.
        ([530, *[580] * 415, 1500], 0.080 + 0.020),
        ([530, *[560] * 415, 1500], 1.560 + 0.020),
        # All at once at the end of each second, at which the SYN goes too.
        ([1000] * 415, 1.0 + 0.020),
        ([1000] * 414, 2.0 + 0.020),
        ([1000] * 207, 3.0 + 0.020),
    ],
)
def test_the_ideal_through_a_trace_has_the_first_opportunities_that_are_left_to_it(times_ms, least_s):
    links = behind_a_trace(cell(flow(0)), times_ms).links
    assert slowdown(links=links) == pytest.approx(0.8 / least_s)


def test_the_ideal_has_the_answer_to_the_syn_wait_for_an_opportunity_back():
    """The SYN is there after 20 ms, and the answer leaves at the end of the second."""
    access, trunk = cell(flow(0)).links
    there = trunk.bottleneck
    back = behind_a_trace(cell(flow(0)), [1000]).links[1].bottleneck
    way = model.LinkWay(**{name: getattr(back, name) for name in model.LinkWay.model_fields})
    links = (access, trunk.model_copy(update={"bottleneck": there.model_copy(update={"reverse": way})}))
    assert slowdown(links=links) == pytest.approx(0.8 / (ideal_s(8e6) + 0.980))


def test_the_ideal_through_a_trace_and_a_slower_link_is_that_of_the_slower():
    access, trunk = behind_a_trace(cell(flow(0)), range(1, 1001)).links
    slow = trunk.bottleneck.model_copy(update={"rate": Rate.parse("4 Mbit/s"), "trace": None})
    links = (access.model_copy(update={"bottleneck": slow}), trunk)
    assert slowdown(links=links) == pytest.approx(0.8 / ideal_s(4e6))


def test_a_transfer_that_did_not_complete_leaves_the_times_of_its_group_unknown():
    of_cell = cell(flow(0, "short", size="600 kB"), flow(1, "short", size="600 kB"))
    tables = came(of_cell, [(steadily(6e6), 0.8)] * 2)
    tables.flows.loc[1, "completion_s"] = NAN
    whole = of_groups(tables, of_cell)[0]
    assert (whole["completed"], whole["completion_median_s"], whole["slowdown_p95"]) == (1, None, None)


@pytest.mark.parametrize("count", [499, 500])
def test_a_99th_percentile_is_of_five_hundred_transfers_or_more(count):
    of_cell = cell(*(flow(n, "short", size="6 kB") for n in range(count)))
    tables = came(of_cell, [(steadily(6e6), (n + 1) / 1000) for n in range(count)])
    whole = of_groups(tables, of_cell)[0]
    expected = None if count < 500 else pytest.approx(np.quantile(np.arange(1, count + 1) / 1000, 0.99))
    assert whole["completion_p99_s"] == expected
    assert whole["completion_p95_s"] is not None


@pytest.mark.parametrize(("later", "done_s"), [("2 s", 0.7), ("2.04 s", 0.74), ("2.05 s", None)])
def test_transfers_that_start_together_are_all_done_when_the_last_is(later, done_s):
    """Within a round trip of 40 ms."""
    of_cell = cell(flow(0, "short", size="6 kB", start="2 s"), flow(1, "short", size="6 kB", start=later))
    tables = came(of_cell, [(steadily(6e6), 0.4), (steadily(6e6), 0.7)])
    found = of_groups(tables, of_cell)[0]["completion_all_s"]
    assert found == (done_s if done_s is None else pytest.approx(done_s))
    tables.flows.loc[1, "completion_s"] = NAN
    assert of_groups(tables, of_cell)[0]["completion_all_s"] is None


def test_a_flow_without_a_receiver_makes_its_group_and_every_share_unknown():
    of_cell = cell(flow(0), flow(1, "b"), flow(2, "c"))
    tables = came(of_cell, [steadily(1e6)] * 3)
    tables.flows.loc[1, "received_bytes"] = NAN
    found = of_groups(
        dataclasses.replace(tables, sockets=tables.sockets[tables.sockets["flow"] != 1]), of_cell
    )
    assert [row["goodput_bps"] is None for row in found if row["phase"] == 0] == [False, True, False]
    assert all(row["share"] is None for row in found)


# Steps


def test_each_plateau_has_its_own_ceiling_goodput_and_queue():
    stepped = cell(flow(0), steps=[step("10 s", "2 Mbit/s")])
    found = rows(
        stepped,
        lambda t: CEILING * (min(t, 10.0) * 1e6 + max(t - 10.0, 0.0) * 0.25e6),
        queue=lambda t: {"backlog_bytes": 1000 if t < 10 else 50_000, "drops": int(t > 12), "ecn_marks": NAN},
    ).set_index("phase_name")
    first, second = found.loc["after start-up, until 10 s: 8 Mbit/s"], found.loc["from 10 s: 2 Mbit/s"]
    # The token bucket holds a frame, which may be there at the start of a phase, and is after a step.
    frame_bits = 8 * burst_bytes(Rate.parse("8 Mbit/s"), timer_hz=1000, frame_bytes=1514)
    lasts_s = first["phase_end_s"] - first["phase_start_s"]
    assert first["ceiling_bps"] == pytest.approx((8e6 + frame_bits / lasts_s) * CEILING)
    assert second["ceiling_bps"] == pytest.approx((2e6 + frame_bits / 10) * CEILING)
    assert (first["goodput_bps"], second["goodput_bps"]) == pytest.approx(
        (8e6 * CEILING, 2e6 * CEILING), rel=2e-3
    )
    assert (first["queue_median_bytes"], second["queue_median_bytes"]) == (1000, 50_000)
    assert (first["queue_drops"], second["queue_drops"]) == (0, 1)
    # What came until 20 s had left the bottleneck until then less 20 ms of propagation.
    most_bps = 5e6 + (6e6 * 0.02 + 2 * frame_bits) / 20
    assert found.loc["whole run", "ceiling_bps"] == pytest.approx(most_bps * CEILING)
    assert found["queue_marks"].isna().all()


@pytest.mark.parametrize(("ecn", "marks"), [(True, [99.0]), (False, [])])
def test_packets_are_marked_where_hosts_negotiate_it(ecn, marks):
    """Elsewhere an AQM counts none, which is no result."""
    marking = cell(flow(0)).model_copy(update={"ecn": ecn})
    found = rows(
        marking,
        steadily(6e6),
        queue=lambda t: {"backlog_bytes": 1000, "drops": 0, "ecn_marks": min(int(5 * t), 99)},
    ).set_index("phase_name")
    assert found.loc[["whole run"], "queue_marks"].dropna().tolist() == marks


def test_recovery_lasts_until_the_new_ceiling_is_filled_and_the_queue_is_what_it_stays():
    stepped = cell(flow(0), steps=[step("10 s", "16 Mbit/s")])

    def slow_to_rise(t):
        """1 MB/s, and 2 MB/s from 3.05 s after the step on."""
        return CEILING * (1e6 * t + 1e6 * max(t - 13.05, 0.0))

    found = rows(
        stepped,
        slow_to_rise,
        queue=lambda t: {"backlog_bytes": 60_000 if 10 <= t < 12 else 5_000, "drops": 0, "ecn_marks": NAN},
    ).set_index("phase_name")
    after = found.loc["from 10 s: 16 Mbit/s"]
    # Windows begin every 0.1 s; to fill 90 % of one, 0.8 s of the full rate are needed.
    assert after["recovery_s"] == pytest.approx(2.9)
    assert 1.5 <= after["queue_settled_s"] <= 2.0
    assert found.loc["whole run", "recovery_s"] == after["recovery_s"]
    assert found.drop(index=["whole run", "from 10 s: 16 Mbit/s"])["recovery_s"].isna().all()


def test_what_a_group_sent_again_is_a_share_of_its_bytes_however_small_its_segments_are():
    """Three streams whose words of 37 bytes were lost once, as those with which iperf3 begins a test."""
    tables = came(cell(flow(0)), [steadily(8e6)])
    sending = tables.sockets["side"] == "sender"
    counted = {"bytes_sent": 111.0, "bytes_retrans": 37.0, "retrans_segments": 1.0}
    tables.sockets.loc[sending, list(counted)] = list(counted.values())
    start_up = pd.DataFrame(of_groups(tables, cell(flow(0)))).set_index("phase").loc[1]
    assert start_up.retransmits == 1
    assert start_up.retransmit_ratio == pytest.approx(37 / 111)


def test_segments_that_a_receiver_had_already_are_a_share_of_those_sent_in_the_phase():
    tables = came(cell(flow(0)), [steadily(8e6)])
    sockets = tables.sockets
    sending = sockets["side"] == "sender"
    before = sending & (sockets["t_s"] < 4)
    for rows, sent, known in ((before, 1000.0, NAN), (sending & ~before, 3000.0, 50.0)):
        sockets.loc[rows, ["sent_segments", "dsack_segments"]] = sent, known
    found = pd.DataFrame(of_groups(tables, cell(flow(0)))).set_index("phase")
    assert list(found.loc[:1, "spurious_ratio"]) == pytest.approx([50 / 3000, 50 / 3000])


def test_what_waits_for_a_lost_segment_counts_when_it_came():
    """From 3.5 to 4.5 s the receiver hands out nothing, then all at once: 117 % of the link in 4 to 10 s."""
    full = CEILING * 1e6
    stepped = cell(flow(0), steps=[step("10 s", "2 Mbit/s")])

    def in_order(t):
        even = full * (min(t, 10.0) + max(t - 10.0, 0.0) / 4)
        return full * 3.5 if 3.5 <= t < 4.5 else even

    tables = came(stepped, [in_order])
    sockets = tables.sockets
    sender = sockets["side"] == "sender"
    sent = sockets.loc[sender, "t_s"] - 0.040
    arrived = full * (sent.clip(upper=10.0) + (sent - 10.0).clip(lower=0.0) / 4)
    acked = np.minimum(arrived, [in_order(t) for t in sent])
    sockets.loc[sender, "bytes_acked"] = acked
    sockets.loc[sender, "sacked_segments"] = (arrived - acked) / 1448
    found = pd.DataFrame(of_groups(tables, stepped)).set_index("phase_name")
    for name, rate_bps in (("after start-up, until 10 s: 8 Mbit/s", 8e6), ("from 10 s: 2 Mbit/s", 2e6)):
        assert found.loc[name, "goodput_bps"] == pytest.approx(rate_bps * CEILING, rel=1e-6)


def test_a_ceiling_that_is_never_filled_again_has_no_recovery():
    stepped = cell(flow(0), steps=[step("10 s", "16 Mbit/s")])
    assert rows(stepped, steadily(6e6)).set_index("phase_name")["recovery_s"].isna().all()


def test_convergence_counts_from_when_the_last_flow_came():
    two = cell(flow(0), flow(1, "b", start="8 s", duration="12 s"), warm_up="2 s")
    found = rows(two, steadily(1e6), lambda t: 125_000 * max(t - 3.0, 0.0)).set_index("phase_name")
    # The newcomer begins 3 s later; in the second that begins half a second before that it has half as much.
    assert found.loc["from 8 s", "convergence_s"].tolist() == pytest.approx([2.5, 2.5])
    assert found.loc["after start-up, until 8 s", "convergence_s"].isna().all()


def test_convergence_is_of_flows_that_take_what_they_can_get():
    film = flow(2, "film").model_copy(update={"video": model.Video(bitrate=Rate.parse("1 Mbit/s"))})
    found = rows(cell(flow(0), flow(1, "b"), film), steadily(3e6), steadily(3e6), steadily(1e5))
    assert found.set_index("phase_name").loc["steady state", "convergence_s"].tolist() == [0.0, 0.0, 0.0]


# Physics


@given(
    st.lists(st.tuples(st.floats(0.1, 50), st.integers(1, 100)), max_size=6),
    st.floats(0, 60),
    st.floats(0, 60),
)
def test_what_a_stepped_link_serves_is_the_integral_of_its_rate(changes, one, other):
    stepped = cell(flow(0), steps=[step(f"{at:.3f} s", f"{rate} Mbit/s") for at, rate in changes])
    rate = RateOverTime.of(stepped, stepped.trunk.name)
    start, end = min(one, other), max(one, other)
    grid = np.linspace(start, end, 2001)
    middles = (grid[1:] + grid[:-1]) / 2
    summed = sum(rate.at(t) for t in middles) * (end - start) / 2000
    assert rate.bits(start, end) == pytest.approx(summed, rel=1e-2, abs=(end - start) / 2000 * 7e8)
    assert rate.bits(start, end) <= rate.most(start, end) * (end - start) * (1 + 1e-9)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 10)), max_size=8))
def test_a_union_is_no_longer_than_the_sum_of_its_spans_nor_than_from_first_to_last(spans):
    placed = [(start, start + length) for start, length in spans]
    covered = union_s(placed)
    assert covered <= sum(length for _, length in spans) + 1e-6
    if placed:
        assert covered <= max(end for _, end in placed) - min(start for start, _ in placed) + 1e-6
        assert covered >= max(end - start for start, end in placed) - 1e-6


RATES = st.lists(st.tuples(st.floats(0, 50), st.floats(1e-3, 20), st.floats(0, 1e9)), min_size=1, max_size=30)


@given(RATES)
def test_what_many_get_together_between_two_instants_is_the_sum_of_what_each_gets(flows):
    starts, lasted, rates = (np.array(column) for column in zip(*flows, strict=True))
    edges = np.arange(72.0)
    together = amounts_between(starts, starts + lasted, rates, edges)
    within = np.clip(starts + lasted, *edges[[0, -1]]) - np.clip(starts, *edges[[0, -1]])
    assert together.sum() == pytest.approx((rates * within).sum(), abs=1)
    for low, high, got in zip(edges[:-1], edges[1:], together, strict=True):
        each = rates * np.maximum(np.minimum(starts + lasted, high) - np.maximum(starts, low), 0)
        assert got == pytest.approx(each.sum(), abs=1)
