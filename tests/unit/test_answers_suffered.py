"""What datagrams suffer in each phase and while other flows run; what packets do in each phase."""

from types import SimpleNamespace

import pandas as pd
import pytest
from measured import carrying, flow_rows

from fabbbr import model
from fabbbr.units import Duration, Rate
from fabbbr_analysis.answers.suffered import (
    datagrams_by_group,
    datagrams_by_phase,
    is_known_beside_flows,
    packets_by_phase,
)
from fabbbr_analysis.waits import waits_s

GAP_S, CALL_S = 0.1, 10.0
STEP = model.Step(at=Duration.parse("6 s"), link="trunk", rtt=Duration.parse("60 ms"))
PHASES = (("start-up", "start", 0, 2), ("until 6 s", "warm-up", 2, 6), ("from 6 s", "step", 6, 10))


def flow(index, group, start, duration, **more):
    return model.Flow(
        index=index, group=group, cca=None if more else "cubic", sender="h1", receiver="h2",
        start=Duration.parse(start), duration=Duration.parse(duration), rtt=Duration.parse("40 ms"), **more,
    )  # fmt: skip


def call(index, group="call"):
    return flow(
        index,
        group,
        "0 s",
        f"{CALL_S:g} s",
        udp=model.Datagrams(rate=Rate.parse("1 Mbit/s"), packet_bytes=200),
    )


def sent(pdv_at, flow=0, group="call", cell_id="c"):
    """Every 100 ms of a call one whose wait, or whose loss as None, ``pdv_at`` says for its instant."""
    instants = [round(number * GAP_S, 6) for number in range(round(CALL_S / GAP_S))]
    return pd.DataFrame(
        {
            "cell_id": cell_id, "flow": flow, "group": group, "t_s": instants,
            "pdv_s": pd.array([pdv_at(t_s) for t_s in instants], dtype="Float64").astype("float64"),
        }
    )  # fmt: skip


def run_of(of_cell, datagrams, **flow_columns):
    """A run set of one certified cell; its last flow is of TCP, from 4 to 6 s."""
    flows = flow_rows(
        *[1e6] * len(of_cell.flows),
        groups=[each.group for each in of_cell.flows],
        starts=[each.start.seconds for each in of_cell.flows],
    ).assign(
        cell_id="c",
        udp_rate_bps=[1e6 if each.udp else None for each in of_cell.flows],
        sender_s=[each.duration.seconds for each in of_cell.flows],
        **flow_columns,
    )
    groups = [
        {"cell_id": "c", "phase": number, "phase_name": name, "begins_with": begins, "phase_start_s": start,
         "phase_end_s": end, "group": group}
        for number, (name, begins, start, end) in enumerate(PHASES, start=1)
        for group in ("call", "download")
    ]  # fmt: skip
    return SimpleNamespace(
        certified=pd.DataFrame({"cell_id": ["c"], "datagram_loss_ratio": [0.0], "pdv_p95_s": [9.0]}),
        plan={"c": of_cell},
        flows=flows,
        groups=pd.DataFrame(groups),
        datagrams=lambda columns, cell_ids: datagrams[columns],
    )


DOWNLOAD = flow(1, "download", "4 s", "2 s")


def test_what_a_step_adds_to_the_way_there_is_no_wait():
    """Half of the 20 ms that the round trip is longer; one on its way meanwhile may be earlier than that."""
    of_cell = carrying(call(0), steps=[STEP])
    rows = pd.DataFrame(
        {"flow": [0] * 5, "t_s": [1.0, 5.0, 6.0, 7.0, 8.0], "pdv_s": [0.0, 0.005, 0.004, 0.010, 0.013]}
    )
    assert waits_s(rows, of_cell).tolist() == pytest.approx([0, 0.005, 0, 0, 0.003])
    assert waits_s(rows, carrying(call(0))).tolist() == rows["pdv_s"].tolist()


def test_where_none_came_while_the_way_was_shortest_the_others_are_compared_with_the_quickest_of_them():
    of_cell = carrying(call(0), steps=[STEP])
    rows = pd.DataFrame({"flow": [0] * 4, "t_s": [1.0, 5.0, 7.0, 8.0], "pdv_s": [None, None, 0.0, 0.004]})
    assert waits_s(rows, of_cell).tolist()[2:] == pytest.approx([0, 0.004])
    assert waits_s(rows.head(2), of_cell).isna().all()


def test_each_phase_has_the_datagrams_that_were_sent_in_it():
    def pdv_s(t_s):
        if t_s >= 6:
            return None if round(t_s * 10) % 4 == 0 else 0.040
        return 0.002 if t_s >= 2 else 0.5

    of_cell = carrying(call(0), DOWNLOAD, steps=[STEP])
    found = datagrams_by_phase(run_of(of_cell, sent(pdv_s)))
    told = {name: runs[["pdv_p95_s", "datagram_loss_ratio"]].iloc[0].tolist() for name, runs in found.items()}
    assert list(told) == ["until 6 s", "from 6 s"]
    assert told["until 6 s"] == pytest.approx([0.002, 0.0])
    assert told["from 6 s"] == pytest.approx([0.030, 0.25])


def test_without_steps_and_of_several_groups_no_phase_is_told():
    of_cell = carrying(call(0), DOWNLOAD)
    one = run_of(of_cell, sent(lambda _: 0.0))
    one.groups["begins_with"] = one.groups["begins_with"].replace("step", "warm-up")
    assert datagrams_by_phase(one) == {}
    both = carrying(call(0), call(1, "back"), flow(2, "download", "4 s", "2 s"), steps=[STEP])
    assert datagrams_by_phase(run_of(both, sent(lambda _: 0.0))) == {}


def test_of_a_call_that_outlasts_a_download_what_it_suffers_beside_it_is_told():
    of_cell = carrying(call(0), DOWNLOAD)
    told = run_of(of_cell, sent(lambda t_s: 0.1 if 4 <= t_s <= 6 else 0.0))
    assert is_known_beside_flows(told)
    (runs,) = datagrams_by_group(told).values()
    assert runs["pdv_p95_s"].tolist() == [0.1]
    assert sum(sent(lambda t_s: 0.1 if 4 <= t_s <= 6 else 0.0)["pdv_s"] > 0) < 0.25 * CALL_S / GAP_S


def test_of_an_older_run_that_noted_none_singly_all_the_time_is_told_and_said():
    older = run_of(
        carrying(call(0), DOWNLOAD), sent(lambda _: 0.0).head(0),
        datagrams_sent=100.0, datagrams_lost=5.0, datagrams_reordered=0.0, jitter_s=0.001, pdv_p95_s=0.02,
    )  # fmt: skip
    assert not is_known_beside_flows(older)
    (runs,) = datagrams_by_group(older).values()
    assert runs[["pdv_p95_s", "datagram_loss_ratio"]].iloc[0].tolist() == pytest.approx([0.02, 0.05])
    assert datagrams_by_phase(older) == {}


def stood():
    """Each stood for as many ms as its second; others elsewhere, the other way or of no flow longer."""
    kinds = (
        ("trunk", "bottleneck", 0, 0),
        ("trunk", "bottleneck", None, 500),
        ("trunk", "bottleneck_reverse", 0, 600),
        ("other", "bottleneck", 0, 700),
    )
    rows = [
        ("c", link, role, flow, second, (second + more) / 1e3)
        for second in range(10)
        for link, role, flow, more in kinds
    ]
    dropped = ("c", "trunk", "bottleneck", 0, 7.2, None)
    return pd.DataFrame([*rows, dropped], columns=["cell_id", "link", "role", "flow", "t_s", "sojourn_s"])


def test_each_phase_has_the_data_that_came_to_the_first_bottleneck_in_it():
    of_cell = carrying(DOWNLOAD, steps=[STEP])
    timed = run_of(of_cell, sent(lambda _: 0.0).head(0))
    packets = stood()
    timed.packets = lambda columns, cell_ids: packets.loc[packets["cell_id"].isin(cell_ids), columns]
    assert packets_by_phase(timed) == {}, "none was timed"
    timed.certified["queue_delay_p95_s"] = 0.009
    told = {name: runs["queue_delay_p95_s"].tolist() for name, runs in packets_by_phase(timed).items()}
    # Of 2, 3, 4 and 5 ms, and of 6, 7, 8 and 9.
    assert told["until 6 s"] == pytest.approx([0.00485])
    assert told["from 6 s"] == pytest.approx([0.00885])
    timed.groups["begins_with"] = timed.groups["begins_with"].replace("step", "warm-up")
    assert packets_by_phase(timed) == {}
