"""How long pings and datagrams beside flows are on their way, in a sentence each."""

import re
from types import SimpleNamespace

import pandas as pd
import pytest
from measured import carrying, flow_rows
from plain_answers import Told, group, said

from fabbbr import model
from fabbbr.units import Duration, Rate, Size
from fabbbr_analysis.answers.delays import told_of_delays
from fabbbr_analysis.answers.suffered import _outlast

IDLE = {"ping_idle_median_s": 0.04}


def pinged(**conditions):
    """Name of an AQM → the 95th percentile of each run, in seconds."""
    told = Told()
    for aqm, values in conditions.items():
        told.condition(aqm, group("cubic", [1e6, 1.1e6, 1.2e6]), ccas="cubic", axes={"aqm": aqm}, **IDLE)
        for row, value in zip(told.runs[-3:], values, strict=True):
            row["ping_p95_s"] = value
    return said(told.answer().headline[-1])


def test_where_they_take_least_and_most_is_told_beside_what_they_take_before():
    text = pinged(cake=[0.041, 0.042, 0.043], pie=[0.08, 0.09, 0.1], taildrop=[0.2, 0.21, 0.22])
    assert text.startswith(
        "Beside the flows pings take least at an AQM of cake, 42.0 [39.5, 44.5] ms in the 95th percentile, "
        "and most at an AQM of taildrop, 210 [185, 235] ms; before the flows start they take 40.0 ms."
    )


def test_where_all_are_alike_no_place_is_named():
    text = pinged(cake=[0.041, 0.042, 0.043], pie=[0.042, 0.043, 0.044])
    assert text.startswith("Beside the flows 95 % of the pings take at most 42.0 [39.5, 44.5] ms to 43.0 ")
    assert text.endswith(" ms everywhere; before the flows start they take 40.0 ms.")


def test_the_congestion_control_is_named_where_it_varies():
    told = Told()
    for cca, value in (("bbr3", 0.05), ("cubic", 0.2)):
        axes = {"cca": cca}
        pings = {"ping_p95_s": value, "ping_idle_median_s": None}
        told.condition(cca, group(cca, [1e6, 1.1e6, 1.2e6]), ccas=cca, axes=axes, **pings)
    text = said(told.answer().headline[-1])
    assert text.startswith("Beside the flows pings take least with bbr3, 50.0 ")
    assert "and most with cubic, 200 " in text
    assert "idle" not in text, "no ping was sent before the flows"


def test_of_one_condition_the_percentile_alone_is_told():
    told = Told().condition("x", group("cubic", [1e6, 1.1e6, 1.2e6]), ccas="cubic", ping_p95_s=0.1, **IDLE)
    text = said(told.answer().headline[-1])
    assert text.startswith("Beside the flows 95 % of the pings take at most 100 ")
    assert text.endswith("; before the flows start they take 40.0 ms.")


def test_where_the_paths_differ_none_is_said_to_be_the_mean_of_all():
    told = Told()
    for rtt, idle_s in (("20 ms", 0.0201), ("100 ms", 0.1001)):
        pings = {"ping_p95_s": 2 * idle_s, "ping_idle_median_s": idle_s}
        told.condition(rtt, group("cubic", [1e6, 1.1e6, 1.2e6]), axes={"rtt": rtt}, **pings)
    assert said(told.answer().headline[-1]).endswith("; before the flows start they take 20.1 to 100 ms.")


def test_without_pings_nothing_is_told():
    told = Told().condition("x", group("a", [1e6, 1.1e6, 1.2e6]), group("b", [2e6, 2.1e6, 2.2e6]))
    assert not any("ping" in each for each in told.answer().headline)


CALL = group("call", 1e5, cca=None, self_limited=True)


def calling(suffered, *groups):
    """Name of an AQM → group → (what its datagrams wait [s], which share is lost), the same in all runs."""
    told, calls = Told(), []
    for aqm, each in suffered.items():
        of_cell = {"axes": {"aqm": aqm}, "pdv_p95_s": 0.001, "datagram_loss_ratio": 0.0}
        told.condition(aqm, *groups, ccas="cubic", **of_cell)
        for row in told.runs[-3:]:
            calls += [
                {"cell_id": row["cell_id"], "group": name, "udp_rate_bps": 1e6, "datagrams_sent": 1000.0,
                 "datagrams_lost": 1000 * lost, "datagrams_reordered": 0.0, "jitter_s": 0.001,
                 "pdv_p95_s": wait_s}
                for name, (wait_s, lost) in each.items()
            ]  # fmt: skip
            calls.append({"cell_id": row["cell_id"], "group": "cubic"})
    headline = told.answer(flows=pd.DataFrame(calls)).headline
    return [text for text in map(said, headline) if "datagram" in text.lower()]


DOWNLOAD = group("cubic", [1e6, 1.1e6, 1.2e6])


def test_where_datagrams_wait_least_and_most_is_told_where_other_flows_run():
    waits = {"cake": {"call": (0.002, 0.0)}, "taildrop": {"call": (0.12, 0.0)}}
    (text,) = calling(waits, DOWNLOAD, CALL)
    assert text.startswith("Beside the flows datagrams wait least at an AQM of cake, 2.00 ms in the 95th")
    assert text.endswith(" percentile, and most at an AQM of taildrop, 120 ms.")
    (alone,) = calling(waits, CALL)
    assert alone.startswith("Datagrams wait least at an AQM of cake, 2.00 ms")


@pytest.mark.parametrize(
    ("download", "longer"),
    [
        ({"start": "0 s", "duration": "10 s"}, False),
        ({"start": "0.5 s", "duration": "9 s"}, False),
        ({"start": "2 s", "duration": "8 s"}, True),
        ({"start": "0 s", "duration": "5 s"}, True),
        ({"start": "0 s", "size": "10 MB"}, False),  # at 8 Mbit/s ten seconds or more
        ({"start": "0 s", "size": "1 MB"}, True),
    ],
)
def test_datagrams_that_run_longer_than_the_flows_are_known(download, longer):
    def timed(index, start, duration=None, size=None, **more):
        return model.Flow(
            index=index, group="g", cca="cubic", sender="h1", receiver="h2", start=Duration.parse(start),
            duration=duration and Duration.parse(duration), size=size and Size.parse(size),
            rtt=Duration.parse("40 ms"), **more,
        )  # fmt: skip

    call = timed(1, "0 s", "10 s", udp=model.Datagrams(rate=Rate.parse("100 kbit/s"), packet_bytes=200))
    assert _outlast(carrying(timed(0, **download), call)) == longer
    assert not _outlast(carrying(call))


def test_what_no_clock_tells_apart_is_no_delay():
    (text,) = calling({"cake": {"call": (1e-9, 0.0)}, "red": {"call": (2e-6, 0.0)}}, DOWNLOAD, CALL)
    assert "at an AQM of cake, 0 ms in the 95th percentile, and most at an AQM of red, 0.002 ms" in text


def test_each_group_of_datagrams_is_told_by_itself():
    """One goes up behind a full queue, the other comes down: a mean of the two is what neither waits."""
    mine, theirs = (group(name, 1e5, cca=None, self_limited=True) for name in ("mine", "theirs"))
    waits = {
        "cake": {"mine": (0.002, 0.0), "theirs": (0.001, 0.0)},
        "taildrop": {"mine": (0.2, 0.25), "theirs": (0.001, 0.0)},
    }
    up, down = calling(waits, DOWNLOAD, mine, theirs)
    assert up.startswith(
        "Beside the flows datagrams of mine that arrive wait least at an AQM of cake, 2.00 ms"
    )
    assert up.endswith(
        "taildrop, 200 ms; up to 25.0 % of all datagrams of mine are lost, at an AQM of taildrop."
    )
    assert down == "Beside the flows 95 % of the datagrams of theirs wait at most 1.00 ms everywhere."


def test_groups_of_datagrams_are_told_beside_one_another_too():
    """Without any flow of TCP: what a sensor suffers from a flood is not what both together do."""
    sensor, flood = (group(name, 1e5, cca=None, self_limited=True) for name in ("sensor", "flood"))
    some, many = calling({"red": {"sensor": (0.001, 0.0), "flood": (0.02, 0.125)}}, sensor, flood)
    assert some == "95 % of the datagrams of sensor wait at most 1.00 ms."
    assert many == (
        "95 % of the datagrams of flood that arrive wait at most 20.0 ms; "
        "12.5 % of all datagrams of flood are lost."
    )
    (alone,) = calling({"red": {"sensor": (0.001, 0.25)}}, sensor)
    lost = "25.0 % of all datagrams are lost."
    assert alone == f"95 % of the datagrams that arrive wait at most 1.00 ms; {lost}"


def test_of_many_groups_of_datagrams_a_few_are_told_and_where_the_others_are():
    names = [f"call {number}" for number in range(5)]
    groups = [group(name, 1e5, cca=None, self_limited=True) for name in names]
    *some, others = calling({"cake": dict.fromkeys(names, (0.002, 0.0))}, DOWNLOAD, *groups)
    assert len(some) == 3
    assert others == "2 more groups have datagrams too."


def lossy(**conditions):
    """Name of an AQM → the 95th percentile and the share without an answer, of each run."""
    told = Told()
    for aqm, runs in conditions.items():
        told.condition(aqm, group("cubic", [1e6, 1.1e6, 1.2e6]), ccas="cubic", axes={"aqm": aqm})
        for row, (p95_s, lost) in zip(told.runs[-3:], runs, strict=True):
            row |= {"ping_p95_s": p95_s, "ping_loss_ratio": lost}
    return said(told.answer().headline[-1])


FEW = [(0.041, 0.0), (0.042, 0.01), (0.043, 0.02)]


def test_how_many_have_no_answer_is_told_where_they_are_most():
    text = lossy(pie=FEW, taildrop=[(0.2, 0.1), (0.21, 0.12), (0.22, 0.14)])
    assert text.startswith("Beside the flows answered pings take least at an AQM of pie, 42.0 ")
    assert "; up to 12.0 [" in text
    assert text.endswith("] % of all pings have no answer, at an AQM of taildrop.")


def test_where_some_run_has_no_answer_at_all_the_others_do_not_speak_for_it():
    text = lossy(pie=FEW, taildrop=[(0.01, 0.5), (0.01, 0.6), (None, 1.0)])
    assert text.startswith("Beside the flows 95 % of the answered pings take at most 42.0 ")
    assert re.search(
        r"ms at an AQM of pie; up to 70 \[\d+, 100\] % of all pings have no answer, at an AQM of tail", text
    )


def test_where_none_has_an_answer_that_is_said():
    text = lossy(pie=[(None, 1.0)] * 3, taildrop=[(None, 1.0)] * 3)
    assert text == "Beside the flows no ping has an answer."


def test_of_datagrams_those_that_are_lost_are_told():
    lost = {"cake": {"call": (0.1, 0.0)}, "taildrop": {"call": (0.1, 0.125)}}
    (text,) = calling(lost, DOWNLOAD, CALL)
    assert text.startswith("Beside the flows 95 % of the datagrams that arrive wait at most ")
    assert text.endswith(" everywhere; up to 12.5 % of all datagrams are lost, at an AQM of taildrop.")


def test_where_each_condition_lacks_an_answer_in_some_run_those_that_came_are_not_denied():
    text = lossy(pie=[(0.01, 0.5), (0.01, 0.6), (None, 1.0)])
    assert re.fullmatch(r"Beside the flows 70 \[\d+, 100\] % of all pings have no answer\.", text)


def test_each_group_of_pings_is_told_by_itself():
    """One of 20 ms and one of 60 ms: percentiles of both together are of neither."""
    cells, pings = ["x,r1", "x,r2"], []
    for cell in cells:
        for name, idle_s in (("near", 0.02), ("far", 0.06)):
            waits = [(-1.0, 0.0), *((t_s, 0.1) for t_s in range(1, 9))]
            pings += [
                {"cell_id": cell, "group": name, "t_s": t_s, "rtt_s": idle_s + wait_s}
                for t_s, wait_s in waits
            ]
    asked = SimpleNamespace(pings=[SimpleNamespace(group=name) for name in ("near", "far")])
    run_set = SimpleNamespace(
        certified=pd.DataFrame(
            {"cell_id": cells, "condition": "x", "experiment": "e", "ccas": "cubic", "status": "certified"}
        ),
        plan=dict.fromkeys(cells, asked),
        flows=pd.concat([flow_rows(1e6).assign(cell_id=cell) for cell in cells]),
        pings=lambda: pd.DataFrame(pings),
    )
    assert list(map(said, told_of_delays(run_set, [], []))) == [
        f"Beside the flows 95 % of the pings of {name} take at most {most} ms; "
        f"before the flows start they take {idle} ms."
        for name, most, idle in (("near", 120, "20.0"), ("far", 160, "60.0"))
    ]


PHASES = (("start-up", "start", 0, 2), ("after start-up, until 4 s", "warm-up", 2, 4),
          ("4 to 8 s: 1 Mbit/s", "step", 4, 8), ("from 8 s: 8 Mbit/s", "step", 8, 10))  # fmt: skip


def stepped(waits, *, phases=PHASES, groups=("ping",)):
    """Congestion control → phase → what each of its pings waits [s]; without an answer None."""
    cells = {f"{cca},r1": cca for cca in waits}
    pings = [
        {"cell_id": cell, "group": "ping", "t_s": start + (end - start) * place / len(each), "rtt_s": wait_s}
        for cell, cca in cells.items()
        for (name, _, start, end), each in zip(phases, waits[cca], strict=True)
        for place, wait_s in enumerate(each)
    ]
    pings += [{"cell_id": cell, "group": "ping", "t_s": -1.0, "rtt_s": 0.04} for cell in cells]
    pings = pd.DataFrame(pings)
    asked = SimpleNamespace(pings=[SimpleNamespace(group=name) for name in groups], flows=())
    told = SimpleNamespace(
        certified=pd.DataFrame(
            {
                "cell_id": list(cells), "condition": list(cells), "experiment": "e", "status": "certified",
                "ccas": list(cells.values()), "axis_cca": list(cells.values()), "ping_p95_s": 0.5,
            }
        ),
        plan=dict.fromkeys(cells, asked),
        flows=pd.concat([flow_rows(1e6).assign(cell_id=cell) for cell in cells]),
        groups=pd.DataFrame(
            {
                "cell_id": cell, "phase": number, "phase_name": name, "begins_with": begins,
                "phase_start_s": start, "phase_end_s": end, "group": group,
            }
            for cell in cells
            for number, (name, begins, start, end) in enumerate(phases, start=1)
            for group in ("one", "other")
        ),
        pings=lambda cell_ids=tuple(cells): pings[pings["cell_id"].isin(cell_ids)],
    )  # fmt: skip
    return list(map(said, told_of_delays(told, [], [])))


def test_with_steps_pings_are_told_of_each_phase_after_start_up():
    """Of the whole run both are as slow: each was once."""
    told = stepped(
        {
            "bbr1": [[0.9], [0.041, 0.042], [0.5, *[0.09] * 9], [0.05] * 4],
            "cubic": [[0.9], [0.1, 0.1], [0.5, *[0.3] * 9], [None, *[0.1] * 3]],
        }
    )
    assert told[0].startswith(
        "In the phase “after start-up, until 4 s” pings take least with bbr1, 42.0 ms in"
    )
    assert told[0].endswith("and most with cubic, 100 ms.")
    assert "start they take" not in " ".join(told)
    assert told[2].startswith(
        "In the phase “from 8 s: 8 Mbit/s” answered pings take least with bbr1, 50.0 ms"
    )
    assert told[2].endswith(
        "and most with cubic, 100 ms; up to 25.0 % of all pings have no answer, with cubic."
    )
    assert len(told) == 3


def test_where_a_few_take_as_long_everywhere_half_of_them_are_told_too():
    few = {"bbr1": [0.5, 0.5, *[0.09] * 18], "cubic": [0.5, 0.5, *[0.3] * 18]}
    phases = (("start-up", "start", 0, 2), ("from 2 s: 1 Mbit/s", "step", 2, 10))
    (text,) = stepped({cca: [[0.9], each] for cca, each in few.items()}, phases=phases)
    assert text == (
        "In the phase “from 2 s: 1 Mbit/s” 95 % of the pings take at most 500 ms everywhere; "
        "half of them at most 90.0 ms with bbr1, and 300 ms with cubic."
    )


def test_without_steps_and_of_several_groups_all_of_a_run_is_told():
    phases = (("start-up", "start", 0, 2), ("steady state", "warm-up", 2, 10))
    one = stepped({"cubic": [[0.9], [0.1] * 4]}, phases=phases)
    assert one == ["Beside the flows 95 % of the pings take at most 500 ms."]
    assert not any("phase" in each for each in stepped({"cubic": [[0.9]] * 4}, groups=("near", "far")))


def test_of_many_phases_a_few_are_told_and_how_many_more_there_are():
    phases = [("start-up", "start", 0, 1), *((f"from {s} s", "step", s, s + 1) for s in range(1, 8))]
    *some, more = stepped({"cubic": [[0.1]] * 8}, phases=phases)
    assert [each[:24] for each in some] == [f"In the phase “from {s} s” " for s in range(1, 5)]
    assert more == "3 more phases have pings too."


# Packets


def test_what_packets_wait_is_told_where_each_was_timed():
    told = Told()
    for cca, waits_s in (("bbr3", [0.001, 0.0011, 0.0012]), ("cubic", [0.03, 0.031, 0.032])):
        told.condition(cca, group(cca, [1e6, 1.1e6, 1.2e6]), ccas=cca, axes={"cca": cca})
        for row, wait_s in zip(told.runs[-3:], waits_s, strict=True):
            row["queue_delay_p95_s"] = wait_s
    assert said(told.answer().headline[-1]) == (
        "Packets wait at the bottleneck least with bbr3, 1.10 [0.85, 1.35] ms in the 95th percentile, "
        "and most with cubic, 31.0 [28.5, 33.5] ms."
    )


def test_datagrams_beside_paced_flows_are_told_of_too():
    paced = group("cubic", 1e6, self_limited=True)
    (text,) = calling({"cake": {"call": (0.002, 0.0)}, "pie": {"call": (0.1, 0.0)}}, paced, CALL)
    assert text.startswith("Beside the flows datagrams wait least at an AQM of cake, 2.00 ms")
