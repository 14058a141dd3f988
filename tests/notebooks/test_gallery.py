"""The eleven questions of docs/gallery.md: what the page says is run as it stands, and answers what it says.

Directions are checked beyond the intervals, and numbers against what physics allows; none is a copied output.
That takes all repetitions, and so ``make numbers``; ``make test`` runs each question with one.
"""

import ast
import re
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from fabbbr.backends.guest.image.found import found_image
from fabbbr.units import TCP_IPV4_HEADER_BYTES, goodput_ceiling

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"
_BLOCK = re.compile(r"^```(yaml|python figure|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUESTIONS = {
    re.search(r"^id: (\w+)$", text, re.MULTILINE)[1]: _BLOCK.findall(text)
    for text in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    if _BLOCK.search(text)
}
RATE_BPS = 20e6
RTT_S = 0.04


def last_value(code, names):
    """Run the code as a notebook does: what its last line, an expression, comes to."""
    tree = ast.parse(code)
    last = tree.body.pop()
    exec(compile(tree, PAGE.name, "exec"), names)  # noqa: S102 - our own page
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)  # noqa: S307


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """A question's run and answer, run in an empty folder."""
    if found_image() is None:
        pytest.skip("there is no guest image: fabbbr guest build")
    monkeypatch.chdir(tmp_path)

    def answer(name, repeat=None):
        (_, experiment), (_, asks), (_, draws) = QUESTIONS[name]
        if repeat is not None:
            experiment = re.sub(r"^repeat: \d+$", f"repeat: {repeat}", experiment, flags=re.MULTILINE)
        (tmp_path / f"{name}.yaml").write_text(experiment)
        names = {}
        table = last_value(asks, names)
        assert isinstance(last_value(draws, names), go.Figure)
        run = names["run"]
        assert list(run.runs["status"]) == ["certified"] * len(run.manifest.cells)
        one_way = run.runs[run.runs["goodput_reverse_bps"].isna()]
        stored_bps = (8 * one_way["burst_bytes"] / one_way["duration_s"]).fillna(0)
        assert (one_way["goodput_bps"] <= (RATE_BPS + stored_bps) * goodput_ceiling(1500)).all()
        for way in ("forward", "reverse"):
            assert (run.runs[f"utilisation_{way}"].dropna() <= 1).all()
        return run, table

    return answer


def intervals(table):
    """Congestion control → the ends of its interval."""
    return {row.axis_cca: (row.low, row.high) for row in table.itertuples()}


def shares(run, group):
    """Varied congestion control → the ends of the interval of what a group gets of the goodput."""
    found = {row.variant: row.values["share"] for row in run.answer.rows if row.group == group}
    return {cca: (share.low, share.high) for cca, share in found.items()}


def test_every_question_has_a_file_an_answer_and_a_figure():
    assert list(QUESTIONS) == [
        "shallow", "drop", "short", "near_far", "queues", "uplink", "late", "pages", "policer", "handover",
        "changing",
    ]  # fmt: skip
    assert {tuple(kind for kind, _ in blocks) for blocks in QUESTIONS.values()} == {
        ("yaml", "python", "python figure")
    }
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text()):
        assert (PAGE.parent / picture).is_file()


@pytest.mark.guest
@pytest.mark.parametrize("name", QUESTIONS)
def test_with_one_repetition_a_question_has_its_answer_and_its_figure_too(answered, name):
    run, _ = answered(name, repeat=1)
    assert set(run.runs["repetition"]) == {1}
    assert run.answer.rows


@pytest.mark.guest
@pytest.mark.numbers
def test_bbr1_starves_cubic_in_a_shallow_buffer_and_bbr3_does_not(answered):
    run, said = answered("shallow")
    share = shares(said, "CUBIC")
    assert share["bbr1"][1] < share["bbr3"][0]
    assert share["bbr1"][1] < 0.5
    # BBRv1 pays no attention to loss, which a buffer of half a BDP makes.
    lost = run.certified.groupby("axis_cca")["retransmit_ratio"]
    assert lost.min()["bbr1"] > lost.max()["bbr3"] > 0


@pytest.mark.guest
@pytest.mark.numbers
def test_after_a_fall_of_the_rate_bbr_drains_its_queue_and_cubic_keeps_it(answered):
    run, table = answered("drop")
    slow_s = intervals(table)
    assert slow_s["bbr1"][1] < slow_s["bbr3"][0]
    # In CUBIC's runs nothing is random: they count as one, which has no interval.
    assert slow_s["bbr3"][1] < table.set_index("axis_cca").loc["cubic", "mean"]
    # A full buffer at the new rate is 2 BDP of the old one: 320 ms, which tail drop lets CUBIC fill. BBRv1
    # remembers a rate for ten round trips, which are that long.
    full_s = RTT_S + 2 * RTT_S * RATE_BPS / 5e6
    assert run.certified.groupby("axis_cca")["rtt_median_s"].max()["cubic"] <= full_s * 1.01
    assert slow_s["bbr1"][0] > 0
    assert slow_s["bbr1"][1] > 10 * RTT_S


@pytest.mark.guest
@pytest.mark.numbers
def test_short_flows_suffer_from_the_queue_that_the_long_one_keeps(answered):
    run, comparison = answered("short")
    completion = comparison.table[comparison.table["metric"] == "completion_mean_s"].set_index("a")
    assert set(completion.index) == {"bbr1", "bbr3"}
    assert (completion["ratio_high"] < 1).all()
    assert (completion["verdict"] == "different").all()
    # 70 segments are three windows of 10, 20 and 40: the last byte is there three and a half round trips
    # after the first SYN, at the earliest.
    assert run.certified["completion_mean_s"].min() > 3.5 * RTT_S


@pytest.mark.guest
@pytest.mark.numbers
def test_bbr_favours_long_round_trips_and_cubic_short_ones(answered):
    run, table = answered("near_far")
    assert len(table) == 6
    share = shares(run, "far")
    assert share["cubic"][1] < 0.5 < min(share["bbr1"][0], share["bbr3"][0])


@pytest.mark.guest
@pytest.mark.numbers
def test_queues_that_keep_flows_apart_make_shares_equal_but_not_losses(answered):
    run, comparison = answered("queues")
    share = run.summary(["bbr_share"]).set_index(["axis_aqm", "axis_cca"])
    assert share.loc[("taildrop", "bbr1"), "low"] > 0.6
    for aqm in ("fq_codel", "cake"):
        assert share.loc[aqm, "low"].min() > 0.4
        assert share.loc[aqm, "high"].max() < 0.6
    lost = comparison.table[comparison.table["metric"] == "retransmit_ratio"].set_index("condition")
    assert (lost["ratio_low"] > 1).all()


@pytest.mark.guest
@pytest.mark.numbers
def test_an_upload_takes_a_downloads_rate_until_its_queue_keeps_them_apart(answered):
    run, table = answered("uplink")
    assert len(table) == 12
    rates = {
        (row.place[0], row.variant): row.values["goodput_per_flow_bps"]
        for row in run.answer.rows
        if row.group == "download"
    }
    for cca in ("bbr1", "bbr3"):
        assert rates["taildrop", cca].high < 0.5 * rates["fq_codel", cca].low
    # In CUBIC's runs nothing is random: they count as one, which has no interval.
    assert rates["taildrop", "cubic"].value < 0.5 * rates["fq_codel", "cubic"].value
    # What waits longest stands behind 100 frames at 2 Mbit/s.
    behind = run.certified.set_index("axis_aqm").loc["taildrop"]
    full_s = RTT_S + 100 * 1514 * 8 / 2e6
    assert (behind["rtt_median_s"] <= full_s * 1.01).all()
    assert (behind["queue_reverse_median_bytes"] > 50 * 1514).all()


@pytest.mark.guest
@pytest.mark.numbers
def test_bbr_bears_packets_that_cubic_takes_for_lost_and_keeps_a_queue_for_them(answered):
    run, table = answered("late")
    assert len(table) == 12
    found = {(row.variant, row.place[0]): row.values for row in run.answer.rows}
    rates = {place: values["goodput_per_flow_bps"] for place, values in found.items()}
    ceiling_bps = RATE_BPS * goodput_ceiling(1500)
    assert rates["cubic", "40 ms"].low > 0.9 * ceiling_bps
    assert rates["cubic", "100 ms"].high < 0.5 * ceiling_bps
    # Each packet that comes too late, one in a hundred, is sent again, and the receiver has it then.
    for cca in ("cubic", "bbr1", "bbr3"):
        assert found[cca, "40 ms"]["spurious_ratio"].high < 0.001
        assert 0.003 < found[cca, "100 ms"]["spurious_ratio"].low
        assert found[cca, "100 ms"]["spurious_ratio"].high < 0.02
    for cca in ("bbr1", "bbr3"):
        assert rates[cca, "100 ms"].low > 0.9 * ceiling_bps
        assert found[cca, "10 ms"]["queue_delay_median_s"].low > 2 * found[cca, "0 ms"]["queue_delay_median_s"].high
    # What BBR has in flight is limited to twice what the path holds.
    assert found["bbr1", "10 ms"]["queue_delay_median_s"].high < 1.1 * RTT_S
    assert believed_bps(run, "0 ms").max() < 1.001 * ceiling_bps < 1.01 * ceiling_bps < believed_bps(run, "10 ms").min()


def believed_bps(run, late):
    """Congestion control → the median of what BBR believes the link's rate to be, in steady state."""
    cells = run.runs[run.runs["axis_late"] == late].set_index("cell_id")["axis_cca"]
    sockets = run.sockets(cell_ids=list(cells.index))
    sending = sockets[(sockets["side"] == "sender") & (sockets["t_s"] > 10) & sockets["bbr_bw_bps"].notna()]
    return sending.groupby(sending["cell_id"].map(cells))["bbr_bw_bps"].median()


@pytest.mark.guest
@pytest.mark.numbers
def test_a_larger_initial_window_saves_the_pages_that_fit_into_it_a_round_trip(answered):
    run, table = answered("pages")
    assert len(table) == 3
    flows = run.flows.merge(run.runs[["cell_id", "axis_window"]], on="cell_id")
    assert len(flows) > 9_000
    assert flows["completion_s"].notna().all()
    segments = np.ceil(flows["received_bytes"] / (1500 - TCP_IPV4_HEADER_BYTES))
    taken = flows.assign(fits=pd.cut(segments, [0, 4, 10, 32, np.inf], labels=["4", "10", "32", "none"]))
    median_s = taken.pivot_table(
        index="fits", columns="axis_window", values="completion_s", aggfunc="median", observed=True
    )
    saved = (median_s["4"] - median_s["10"]) / RTT_S, (median_s["10"] - median_s["32"]) / RTT_S
    # One that fits into the smaller window gains nothing; one that fits into the larger alone a round trip.
    assert abs(saved[0]["4"]) < 0.2
    assert 0.8 < saved[0]["10"] < 1.2
    assert abs(saved[1]["10"]) < 0.2
    assert 0.7 < saved[1]["32"] < 1.2
    middle = {row.variant or row.place[0]: row.values["completion_median_s"] for row in run.answer.rows}
    assert middle["10"].high < middle["4"].low


@pytest.mark.guest
@pytest.mark.numbers
def test_a_policer_needs_a_deep_bucket_for_cubic_and_none_for_bbr1_which_pays_with_bytes_sent_again(answered):
    run, table = answered("policer")
    assert len(table) == 12
    # No queue, so nobody waits longer than two frames take.
    assert (run.runs["rtt_median_s"] < RTT_S + 3 * 1514 * 8 / RATE_BPS).all()
    used = run.runs.groupby(["axis_cca", "axis_depth"])["utilisation"].agg(["min", "max"])
    assert used.loc[("cubic", "10 kB"), "max"] < 0.9 < 0.98 < used.loc[("cubic", "800 kB"), "min"]
    assert used.loc[("bbr1", "10 kB"), "min"] > 0.97
    again = run.runs.groupby(["axis_cca", "axis_depth"])["retransmit_ratio"].agg(["min", "max"])
    assert again.loc[("bbr1", "10 kB"), "min"] > 3 * again.loc[("bbr3", "10 kB"), "max"]
    assert again.loc[("bbr3", "10 kB"), "min"] > again.loc[("cubic", "10 kB"), "max"]
    for cca in ("bbr1", "bbr3"):
        assert again.loc[(cca, "800 kB"), "min"] > again.loc[("cubic", "800 kB"), "max"]


@pytest.mark.guest
@pytest.mark.numbers
def test_a_handover_costs_seconds_where_the_path_becomes_much_longer_and_only_there(answered):
    run, table = answered("handover")
    assert len(table) == 12
    later = [row for row in run.answer.rows if row.begins_with == "step"]
    after_s = {(row.place[0], row.rival): row.values["recovery_s"] for row in later}
    near_s = [found for (then, _), found in after_s.items() if then in ("20 ms", "40 ms")]
    assert max(found.high or found.value for found in near_s) < 1
    # In CUBIC's runs nothing is random: they count as one, which has no interval.
    assert after_s["80 ms", "cubic"].value < min(after_s["80 ms", cca].value for cca in ("bbr1", "bbr3"))
    assert after_s["160 ms", "bbr1"].high < after_s["160 ms", "cubic"].value
    # BBR looks for its shortest round trip anew when the last one is ten seconds old; twice the BDP of the
    # shorter path is half of the longer one's.
    groups = run.groups[run.groups["begins_with"] == "step"].merge(run.runs[["cell_id", "axis_then"]])
    far = groups[(groups["axis_then"] == "160 ms") & (groups["cca"] == "bbr1")]
    assert far["recovery_s"].between(1, 10 + 10 * 0.16).all()
    assert (far["goodput_bps"] < 0.95 * far["ceiling_bps"]).all()


@pytest.mark.guest
@pytest.mark.numbers
def test_in_a_small_buffer_all_would_change_to_bbr3_and_in_a_deep_one_not_the_last(answered):
    run, table = answered("changing")
    gain_bps = {
        (row["axis_buffer"], row["axis_changed_flows"]): (row["low"], row["high"])
        for row in table.to_dict("records")
    }
    assert min(gain_bps["1 BDP", n][0] for n in "1234") > 0
    assert gain_bps["8 BDP", "1"][0] > 0
    assert max(gain_bps["8 BDP", n][1] for n in "34") < 0
    # Four of a kind share what there is, whichever kind it is.
    alike = run.runs[run.runs["axis_changed_flows"].isin(["0", "4"])]
    assert (alike["utilisation"] > 0.95).all()
    assert (alike["jain_flows"] > 0.5).all()
