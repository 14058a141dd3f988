from __future__ import annotations

import csv
import dataclasses
import hashlib
import re
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest
import synthetic
from html_document import Document
from hypothesis import assume, given
from hypothesis import strategies as st
from plotly.offline import get_plotlyjs_version

from fabbbr.errors import AnalysisError, StoreError
from fabbbr.manifest import CellManifest, Certificate, Check, CongestionControl
from fabbbr.model import Bottleneck, LinkTrace, LinkWay, Reordering, Step
from fabbbr.store import RunFolder
from fabbbr.units import Duration, Rate, Size
from fabbbr_analysis.claims import RULES_VERSION
from fabbbr_analysis.figures.catalogue import palette_of
from fabbbr_analysis.press.caption import of_table
from fabbbr_analysis.report import render, write_comparison, write_report
from fabbbr_analysis.report.arrangement import arranged, in_pairs, ordered
from fabbbr_analysis.report.bands import drawing
from fabbbr_analysis.report.certificates import collect
from fabbbr_analysis.report.diagram import buffers, in_words, spread
from fabbbr_analysis.report.diagram import drawing as path_drawing
from fabbbr_analysis.report.provenance import conditions, facts, gist, rerun_command
from fabbbr_analysis.report.slots import Slot, embed, overview_slots
from fabbbr_analysis.summary import summarise

BROKEN = "cca=cubic,loss=0.1%,r2"
F10 = dataclasses.replace(
    synthetic.CARDWELL_F10, losses=("0.001 %", "0.1 %", "15 %"), repeat=3, broken_cells=(BROKEN,)
)
E1 = dataclasses.replace(synthetic.KNIT6_E1, rtts=("6 ms", "61 ms"), ccas=("cubic", "bbr1"), repeat=2)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return synthetic.run_set(F10, folder / "f10", period_s=1.0), synthetic.run_set(
        E1, folder / "e1", period_s=1.0
    )


@pytest.fixture(scope="module")
def report(runs):
    return write_report(runs, runs[0].path.parent / "report")


@pytest.fixture(scope="module")
def page(report):
    return Document(report.read_text(encoding="utf-8"))


# The page as a whole


def test_the_same_run_sets_give_the_same_bytes(runs, report):
    files = ("report.html", "report.md", "answers.csv", "summary.csv", "claims.csv")
    before = [(report.parent / name).read_bytes() for name in files]
    write_report(runs, report.parent)
    assert [(report.parent / name).read_bytes() for name in files] == before


def test_the_scoreboard_counts_each_claim_once(runs, page, report):
    with (report.parent / "claims.csv").open(encoding="utf-8") as file:
        verdicts = [row for row in csv.DictReader(file) if row["experiment"] in ("cardwell_f10", "knit6_e1")]
    total, said = re.search(r"Of (\d+) published claims: ([^.]*)\.", page.text).groups()
    assert int(total) == len(verdicts) == sum(int(count) for count in re.findall(r"(\d+) ", said))


def test_verdicts_say_by_which_version_of_the_rules_they_were_judged(page, report):
    with (report.parent / "claims.csv").open(encoding="utf-8") as file:
        assert {row["rules_version"] for row in csv.DictReader(file)} == {str(RULES_VERSION)}
    assert f"Judged by version {RULES_VERSION} of the rules." in page.text


def test_a_cell_that_is_not_certified_is_named_with_its_reason(page):
    assert BROKEN in page.text
    assert "rate is 9 % below what was asked" in page.text
    assert "25 of 26 cells certified" in page.text


def test_real_time_is_marked_where_the_clock_was_real_and_only_there(runs, tmp_path):
    virtual = Document(write_report(runs[:1], tmp_path / "a").read_text(encoding="utf-8")).text
    real = Document(write_report(runs[1:], tmp_path / "b").read_text(encoding="utf-8")).text
    assert "real time" in real
    assert "REAL TIME" in real
    assert "real time" not in virtual.lower()


def test_markup_in_a_title_is_shown_and_not_obeyed(runs, tmp_path):
    manifest = runs[0].manifest
    hostile = {**manifest.experiment, "title": "<script>alert(1)</script> & <b>bold"}
    changed = synthetic.changed(runs[0], manifest=manifest.model_copy(update={"experiment": hostile}))
    text = write_report([changed], tmp_path).read_text(encoding="utf-8")
    assert "<script>alert(1)" not in text
    assert "<script>alert(1)</script> & <b>bold" in Document(text).text


def test_the_data_of_a_figure_cannot_end_the_script_that_holds_it():
    data = embed(go.Figure(go.Scatter(x=[1], y=[2], name="</script><script>alert(1)")))
    assert "<" not in data


def test_a_table_in_markdown_has_as_many_cells_in_each_row_as_in_its_head(report):
    lines = (report.parent / "report.md").read_text(encoding="utf-8").splitlines()
    width = None
    rows = 0
    for line in lines:
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        width = width or cells
        rows += 1
        assert cells == width, line
    assert rows > 20


def test_the_summary_holds_the_means_of_certified_runs(runs, report):
    table = pd.read_csv(report.parent / "summary.csv")
    row = table[(table["condition"] == "cca=cubic,loss=0.1%") & (table["metric"] == "goodput_bps")]
    certified = runs[0].certified
    expected = certified[certified["condition"] == "cca=cubic,loss=0.1%"]["goodput_bps"].mean()
    assert list(row["mean"]) == pytest.approx([expected])
    assert list(row["excluded"]) == [1]


def test_a_report_of_nothing_is_refused_and_leaves_nothing(runs, tmp_path):
    empty = synthetic.changed(runs[0], runs=runs[0].runs.iloc[:0])
    for run_sets in ([], [empty]):
        with pytest.raises(AnalysisError, match="fabbbr"):
            write_report(run_sets, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_named(runs, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="--out"):
        write_comparison(runs[0], runs[0], tmp_path / "file" / "out")


def test_the_report_says_which_implementation_stood_behind_each_name(runs):
    stood = (
        CongestionControl(cca="bbr1", kernel_name="bbr", implementation="mainline 6.12.57"),
        CongestionControl(
            cca="bbr2",
            kernel_name="fab_bbr2",
            implementation="fabbbr",
            profile="v2alpha",
            source="0123456789abcdef",
        ),
    )
    stored = [each.manifest for each in RunFolder.open(runs[0].path).cells()]
    told = [
        each.model_copy(
            update={
                "provenance": each.provenance.model_copy(update={"congestion_controls": stood[: 1 + place]})
            }
        )
        for place, each in enumerate(stored[:2])
    ]
    said = {fact.name: fact.value for fact in facts(runs[0].manifest, [each.provenance for each in told])}
    assert said["Congestion controls"] == (
        "bbr1: mainline 6.12.57 (bbr); bbr2: fabbbr (fab_bbr2, profile v2alpha, source 0123456789abcdef)"
    )
    without = [each.provenance for each in stored]
    assert "Congestion controls" not in {fact.name for fact in facts(runs[0].manifest, without)}


def test_a_report_names_the_guest_image_with_the_digest_that_manifests_have(runs):
    provenance = next(iter(RunFolder.open(runs[0].path).cells())).manifest.provenance
    machines = {
        name: machine.model_copy(update={"image_sha256": "0123456789abcdef" * 4})
        for name, machine in provenance.testbed.machines.items()
    }
    testbed = provenance.testbed.model_copy(update={"machines": machines})
    told = facts(runs[0].manifest, [provenance.model_copy(update={"testbed": testbed})])
    assert {fact.name: fact.value for fact in told}["Guest image"] == "sha256 0123456789abcdef…"
    assert "Guest image" not in {fact.name for fact in facts(runs[0].manifest, [provenance])}


def test_throughput_retransmissions_and_queue_stand_in_one_wide_figure_where_rtt_was_varied(runs):
    (slot,) = overview_slots(runs[1], palette_of(runs[1]), "e1")
    assert slot.wide
    assert "against propagation RTT" in slot.title
    assert (
        "scaled from 10 Gbit/s to 200 Mbit/s; published counts hold for their own rate only" in slot.caption
    )
    assert overview_slots(runs[0], palette_of(runs[0]), "e0") == []


def test_a_report_says_who_wins_where_and_has_a_row_for_each_group_in_each_phase(runs, report, page):
    markdown = report.with_name("report.md").read_text(encoding="utf-8")
    assert "Of 3 comparisons, " in markdown
    table = markdown.partition("### Who wins, by how much, how sure")[2].partition("###")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "steady state" in line]
    assert len(rows) == 6
    assert all("ahead of" in row or "behind" in row or "not clear from" in row for row in rows)
    assert "Who wins, by how much, how sure" in page.text


def test_what_a_reader_must_know_before_believing_stands_in_the_report(runs, tmp_path):
    f10 = runs[0]
    groups = f10.groups.assign(implementation="fabbbr", queue_marks=70_000)
    deaf = synthetic.changed(f10, cells=f10.cells.assign(ecn=True), groups=groups)
    written = write_report([deaf], tmp_path)
    for text in (written.read_text(encoding="utf-8"), (tmp_path / "report.md").read_text(encoding="utf-8")):
        assert "bbr1 as run here does not answer marks" in text


# Comparison


def test_a_run_compared_with_itself_has_not_changed(runs, tmp_path):
    page = Document(write_comparison(runs[0], runs[0], tmp_path).read_text(encoding="utf-8"))
    assert not [each for each in page.of("span") if "v-changed" in str(each.get("class"))]
    assert "Nothing that the manifests record." in page.text


def test_what_changed_comes_first_and_the_set_up_says_why_it_may_have(runs, tmp_path):
    slower = synthetic.run_set(F10, tmp_path / "slower", seed=2, period_s=5.0, gain=0.5)
    page = Document(write_comparison(runs[0], slower, tmp_path / "out").read_text(encoding="utf-8"))
    badges = [each["class"].split(" v-")[1] for each in page.of("span") if "badge" in str(each.get("class"))]
    assert badges[0] == "changed"
    assert badges == sorted(badges, key=("changed", "unclear", "unchanged").index)
    assert "Seed of the run 1 2" in page.text


# Drawings


@given(
    ends=st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=5, unique=True),
    sides=st.sampled_from(["both", "low", "high"]),
)
def test_a_drawn_interval_stands_to_its_band_as_the_numbers_do(ends, sides):
    assume(min(abs(a - b) for a in ends for b in ends if a != b) > 1)
    edge, other = sorted(ends[:2])
    low, value, high = sorted(ends[2:])
    least, most = (None if sides == "high" else edge, None if sides == "low" else other)
    text = str(drawing((least, most), value, (low, high), label="x"))
    rect = re.search(r'class="inside" x="([-\d.]+)" y="4" width="([\d.]+)"', text)
    left, right = float(rect[1]), float(rect[1]) + float(rect[2])
    start, end = (float(x) for x in re.search(r'class="whisker" d="M([\d.]+) \S+H([\d.]+)M', text).groups())
    point = float(re.search(r'cx="([\d.]+)"', text)[1])
    near = 0.21  # two coordinates, each rounded to a tenth of a pixel
    assert start - near <= point <= end + near
    if least is not None:
        assert (low >= least) == (start >= left - near) or abs(start - left) <= near
    if most is not None:
        assert (high <= most) == (end <= right + near) or abs(end - right) <= near


def test_the_path_shows_every_node_and_what_the_bottleneck_was_asked(runs):
    cells = runs[0].manifest.cells
    text = re.sub(r"<[^>]+>", "|", str(path_drawing(cells)))
    for word in (
        "h1",
        "s1",
        "h2",
        "100 Mbit/s",
        "buffer 10 BDP",
        "50 ms each way",
        "loss 0.001 %, 0.1 % and 15 %",
    ):
        assert f"|{word}|" in text
    assert "s1 to h2: 100 Mbit/s" in in_words(cells)


def test_a_wide_path_keeps_a_legible_number_of_nodes_and_counts_the_rest(runs):
    cell = runs[0].manifest.cells[0]
    many = tuple(cell.hosts[0].model_copy(update={"name": f"h{number}"}) for number in range(10, 30))
    wide = cell.model_copy(update={"hosts": (*cell.hosts, *many)})
    text = str(path_drawing([wide]))
    assert text.count('class="node host"') == 7
    assert "and 15 more" in text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["1 %", "1 %"], "1 %"),
        (["1 %", "2 %"], "1 % and 2 %"),
        ([f"{number} %" for number in range(8)], "0 % … 7 % (8 values)"),
    ],
)
def test_a_setting_is_told_by_its_values_or_by_its_ends(values, said):
    assert spread(values) == said


# Certificates and provenance


def manifest_with(stored: CellManifest, *checks: Check) -> CellManifest:
    return stored.model_copy(update={"certificate": Certificate(checks=checks)})


def test_what_failed_stands_above_what_passed(runs):
    cells = runs[0].manifest.cells
    stored = synthetic.manifest_of(F10, cells[0])
    good = Check(name="a", passed=True, asked="1 ms", measured="1 ms")
    bad = Check(name="z", passed=False, asked="2 ms", measured="9 ms")
    found = collect([manifest_with(stored, good, bad)], [cell.id for cell in cells], {})
    assert [summary.name for summary in found.summaries] == ["z", "a"]
    assert [failure.check for failure in found.failed] == [bad]
    assert found.missing == tuple(cell.id for cell in cells[1:])


def test_the_command_to_run_again_survives_a_shell_and_names_seed_backend_and_profile(runs):
    manifest = runs[0].manifest.model_copy(update={"source_name": "my run.yaml", "seed": 7})
    command = "fabbbr run 'my run.yaml' --quick --repeat 3 --backend guest --seed 7"
    assert rerun_command(manifest, [synthetic.manifest_of(F10, manifest.cells[0]).provenance]) == command


def test_the_command_to_run_again_asks_for_the_clock_that_was_used(runs):
    real = dataclasses.replace(F10, clock="real")
    origins = [synthetic.manifest_of(real, cell).provenance for cell in runs[0].manifest.cells]
    assert "--clock real" in rerun_command(runs[0].manifest, origins)


def test_buffers_are_told_from_the_smallest_whatever_the_order_of_the_plan(runs):
    trunk = runs[0].manifest.cells[0].bottleneck
    queues = [
        trunk.model_copy(update={"buffer_asked": f"{bdp:g} BDP", "buffer_bytes": int(bdp * trunk.bdp_bytes)})
        for bdp in (10, 0.5, 100, 1)
    ]
    assert buffers(queues) == ["0.5 BDP", "1 BDP", "10 BDP", "100 BDP"]


def test_competing_groups_of_flows_are_series_of_the_page(runs, tmp_path):
    own = runs[0].flows
    rival = own.assign(flow=1, group="rival", cca="reno", goodput_bps=1e6, retransmits=1)
    both = synthetic.changed(runs[0], flows=pd.concat([own, rival], ignore_index=True))
    text = write_report([both], tmp_path).read_text(encoding="utf-8")
    for beside in ("bbr1", "cubic"):
        assert f'"name":"reno (rival) [cca={beside}]"' in text


def test_one_run_a_condition_gives_a_report_without_intervals(runs, tmp_path):
    one = synthetic.changed(runs[0], runs=runs[0].runs[runs[0].runs["repetition"] == 1])
    text = Document(write_report([one], tmp_path).read_text(encoding="utf-8")).text
    assert "(no interval)" in text


def test_steps_and_warm_up_reach_the_reader_of_the_conditions(runs, tmp_path):
    manifest = runs[0].manifest
    cells = tuple(cell.model_copy(update={"warm_up": Duration.parse("7 s")}) for cell in manifest.cells)
    changed = synthetic.changed(runs[0], manifest=manifest.model_copy(update={"cells": cells}))
    text = Document(write_report([changed], tmp_path).read_text(encoding="utf-8")).text
    assert "Left out of steady state 7 s" in text


def test_limits_marks_and_every_mtu_reach_the_reader_of_the_conditions(runs):
    manifest = runs[0].manifest
    rate, waited = Rate.parse("8.5 Mbit/s"), Duration.parse("242 us")

    def with_marks(link):
        if link.bottleneck is None:
            return link
        return link.model_copy(
            update={"bottleneck": link.bottleneck.model_copy(update={"ce_threshold": waited})}
        )

    first, second, *_ = manifest.cells
    limited = [flow.model_copy(update={"maxrate": rate}) for flow in first.flows]
    marked = [with_marks(link) for link in second.links]
    cells = (
        first.model_copy(update={"flows": tuple(limited), "mtu_bytes": 9000}),
        second.model_copy(update={"links": tuple(marked), "ecn": True}),
    )
    changed = manifest.model_copy(update={"cells": cells})
    said = {fact.name: fact.value for fact in conditions(changed)}
    assert said["MTU"] == "1500 and 9000 bytes"
    assert said["Limit of a connection"] == "8.5 Mbit/s by fq"
    assert said["ECN"] == "off; on, marking what has waited 242 us"
    without = {fact.name: fact.value for fact in conditions(manifest)}
    assert without["ECN"] == "off"
    told = {"Limit of a connection", "Flow sizes", "Starts", "Changes while flows run"}
    assert told.isdisjoint(without)


def test_sizes_starts_and_every_step_reach_the_reader_of_the_conditions(runs):
    manifest = runs[0].manifest
    (flow,) = manifest.cells[0].flows
    size = {"duration": None, "size": Size.parse("1 MB"), "group": "small"}
    flows = (flow, *(flow.model_copy(update={**size, "start": Duration.parse(at)}) for at in ("5 s", "7 s")))
    steps = (
        Step(at=Duration.parse("20 s"), link="trunk", rate=Rate.parse("10 Mbit/s")),
        Step(at=Duration.parse("10 s"), link="trunk", rtt=Duration.parse("60 ms"), buffer_bytes=250_000),
    )
    cells = tuple(cell.model_copy(update={"flows": flows, "steps": steps}) for cell in manifest.cells)
    said = {fact.name: fact.value for fact in conditions(manifest.model_copy(update={"cells": cells}))}
    assert said["Flow sizes"] == "small: 2 × 1 MB"
    assert said["Starts"] == f"{flow.group} at 0 s; small at 5 s and 7 s"
    assert said["Changes while flows run"] == "at 10 s RTT 60 ms, buffer 250 kB; at 20 s rate 10 Mbit/s"
    recorded = tuple(cell.model_copy(update={"steps": steps * 10, "steps_file": "sky.csv"}) for cell in cells)
    told = conditions(manifest.model_copy(update={"cells": recorded}))
    assert {fact.name: fact.value for fact in told}["Changes while flows run"] == "20 steps (sky.csv)"
    assert said["Duration"] == f"{flow.duration} and until the bytes asked for have arrived"
    one_apart = manifest.model_copy(update={"cells": (*cells[:1], *manifest.cells[1:])})
    starts = {fact.name: fact.value for fact in conditions(one_apart)}["Starts"]
    assert set(starts.split(" · ")) == {said["Starts"], "all at 0 s"}


def test_what_differs_between_conditions_comes_in_order_whatever_ran_first(runs):
    manifest = runs[0].manifest

    def changed(cell, ms):
        (flow,) = cell.flows
        late = {"start": Duration.parse(f"{ms} ms"), "initial_window": ms, "group": "late"}
        step = Step(at=Duration.parse("10 s"), link="trunk", rtt=Duration.parse(f"{ms} ms"))
        return cell.model_copy(update={"flows": (flow, flow.model_copy(update=late)), "steps": (step,)})

    def queue(cell, aqm):
        links = [
            link if link.bottleneck is None
            else link.model_copy(update={"bottleneck": link.bottleneck.model_copy(update={"aqm": aqm})})
            for link in cell.links
        ]  # fmt: skip
        return cell.model_copy(update={"links": tuple(links)})

    cells = tuple(changed(cell, ms) for cell, ms in zip(manifest.cells, (40, 90, 25), strict=False))
    aqms = ("pie", "cake", "taildrop", "red", "codel")
    by_queue = [queue(cell, aqm) for cell, aqm in zip(manifest.cells, aqms, strict=False)]
    queues = {fact.name: fact.value for fact in conditions(manifest.model_copy(update={"cells": by_queue}))}
    assert queues["Queue discipline"] == "cake, codel, pie, red and taildrop"
    said = {fact.name: fact.value for fact in conditions(manifest.model_copy(update={"cells": cells}))}
    assert said["Changes while flows run"] == " · ".join(f"at 10 s RTT {ms} ms" for ms in (25, 40, 90))
    flow = cells[0].flows[0].group
    assert said["Starts"] == " · ".join(f"{flow} at 0 s; late at 0.0{ms:g} s" for ms in (25, 4, 9))
    assert [text.split("late: ")[1] for text in said["Initial window"].split(" · ")] == ["25", "40", "90"]


# Which figures stand where


def slots(*wide):
    return [
        Slot(
            id=str(place), title=str(place), caption="", alt="", height=1, options=(), selector="",
            scale_toggle=False, wide=each,
        )
        for place, each in enumerate(wide)
    ]  # fmt: skip


@given(st.lists(st.lists(st.booleans(), max_size=12), min_size=1, max_size=9))
def test_at_most_six_figures_of_a_page_stand_open_and_none_is_lost(pages):
    found = arranged([slots(*wide) for wide in pages])
    standing = [(each.first is not None) + len(each.open) for each in found]
    assert sum(standing) == min(6, sum(len(wide) for wide in pages))
    for wide, each in zip(pages, found, strict=True):
        shown = ([each.first] if each.first else []) + [*each.open, *each.folded]
        assert [slot.id for slot in shown] == [slot.id for slot in slots(*wide)]
        assert each.first is None or each.first.wide
    firsts = [each.first is not None for each, wide in zip(found, pages, strict=True) if wide]
    assert all(firsts[:6])


@given(st.lists(st.booleans(), max_size=12))
def test_a_row_of_the_page_is_never_half_empty(wide):
    row = 0
    for slot in in_pairs(slots(*wide)):
        assert not (slot.wide and row)
        row = 0 if slot.wide else (row + 1) % 2
    assert row == 0


def test_what_happened_over_time_comes_first_where_something_changes(runs):
    manifest = runs[0].manifest
    steps = (Step(at=Duration.parse("20 s"), link="trunk", rate=Rate.parse("10 Mbit/s")),)
    cells = tuple(cell.model_copy(update={"steps": steps}) for cell in manifest.cells)
    changed = synthetic.changed(runs[0], manifest=manifest.model_copy(update={"cells": cells}))
    palette = palette_of(changed)
    assert ordered(changed, palette, "e")[0].id == "e-over-time"
    assert "rate 10\u00a0Mbit/s at 20\u00a0s" in ordered(changed, palette, "e")[0].caption
    assert ordered(runs[0], palette, "e")[0].id == "e-metric-0"


def test_the_first_figure_stands_between_the_headline_and_the_claims(report):
    text = report.read_text(encoding="utf-8")
    order = [text.index(each) for each in ("<h1>", "<figure id=", 'class="answers"', 'id="claims"')]
    assert order == sorted(order)


def test_an_experiment_of_ones_own_has_no_word_of_claims(runs, tmp_path):
    manifest = runs[0].manifest.model_copy(update={"claims": ()})
    own = synthetic.changed(runs[0], manifest=manifest)
    own.experiment = "of_my_own"
    document = Document(write_report([own], tmp_path).read_text(encoding="utf-8"))
    assert "claim" not in document.text.replace("claims.csv", "").lower()


def test_a_link_trace_reaches_the_reader_of_the_conditions(runs):
    manifest = runs[0].manifest
    trace = LinkTrace(name="lte.up", opportunities=1, length_ms=9, most_at_once=111, gaps_ms="9")
    followed = _with_bottlenecks(manifest, trace=trace)
    told = {fact.name: fact.value for fact in conditions(followed)}
    assert told["Link trace"] == "lte.up, packet by packet"
    rate = followed.cells[0].bottleneck.rate
    assert told["Bottleneck"] == f"{rate} on average (lte.up)"
    some = followed.model_copy(update={"cells": (followed.cells[0], *manifest.cells[1:])})
    told = {fact.name: fact.value for fact in conditions(some)}
    assert told["Link trace"] == f"lte.up, packet by packet in 1 of {len(manifest.cells)} cells"
    assert "Link trace" not in {fact.name for fact in conditions(manifest)}


def test_a_way_back_of_its_own_reaches_the_reader_of_the_conditions_and_of_a_caption(runs):
    back = LinkWay(
        rate=Rate.parse("2 Mbit/s"), buffer_bytes=9000, buffer_asked="9 kB", bdp_bytes=9000, aqm="cake"
    )
    slower = _with_bottlenecks(runs[0].manifest, reverse=back)
    told = {fact.name: fact.value for fact in conditions(slower)}
    assert told["Way back"] == "2 Mbit/s, buffer 9 kB, cake"
    assert "100 Mbit/s, back 2 Mbit/s, RTT" in gist(slower).replace("\u00a0", " ")
    assert "Way back" not in {fact.name for fact in conditions(runs[0].manifest)}
    assert "way back 2 Mbit/s, buffer 9 kB, cake; " in of_table(
        synthetic.changed(runs[0], manifest=slower), "A table", summarise(runs[0].runs, ["goodput_bps"])
    ).replace("\u00a0", " ")


def test_what_was_run_says_that_packets_come_late(runs):
    manifest = runs[0].manifest
    late = Reordering.model_validate({"rate": "2 %", "late": "5 ms"})
    cells = [
        cell.model_copy(update={"links": tuple(
            link.model_copy(update={"reordering": late if link.bottleneck else None}) for link in cell.links
        )})
        for cell in manifest.cells
    ]  # fmt: skip
    said = gist(manifest.model_copy(update={"cells": tuple(cells)})).replace("\u00a0", " ")
    assert ", 2 % of the data 5 ms late; " in said
    assert "late" not in gist(manifest)


def test_what_was_run_says_how_deep_a_token_bucket_is(runs):
    manifest = runs[0].manifest
    deep = _with_bottlenecks(manifest, burst_bytes=250_000, burst_asked="250 kB")
    told = {fact.name: fact.value for fact in conditions(deep)}
    assert told["Token bucket"] == "250 kB"
    assert "100 Mbit/s, token bucket 250 kB, RTT" in gist(deep).replace("\u00a0", " ")
    some = deep.model_copy(update={"cells": (*deep.cells, *manifest.cells)})
    told = {fact.name: fact.value for fact in conditions(some)}
    assert told["Token bucket"] == "250 kB, or no more than the rate needs"
    assert "token bucket 250 kB" in of_table(
        synthetic.changed(runs[0], manifest=deep), "A table", summarise(runs[0].runs, ["goodput_bps"])
    ).replace("\u00a0", " ")


def test_what_was_run_names_udp_beside_the_congestion_controls(runs):
    manifest = runs[0].manifest
    cells = [
        cell.model_copy(update={"flows": (*cell.flows, cell.flows[0].model_copy(update={"cca": None}))})
        for cell in manifest.cells
    ]
    both = manifest.model_copy(update={"cells": tuple(cells)})
    assert " and UDP over 100" in gist(both).replace("\u00a0", " ")
    told = {fact.name: fact.value for fact in conditions(both)}
    assert told["Congestion control"].endswith(" and none (UDP)")


def _with_bottlenecks(manifest, **changes):
    def changed(link):
        queue = None if link.bottleneck is None else link.bottleneck.model_copy(update=changes)
        return link.model_copy(update={"bottleneck": queue})

    cells = (cell.model_copy(update={"links": tuple(map(changed, cell.links))}) for cell in manifest.cells)
    return manifest.model_copy(update={"cells": tuple(cells)})


# plotly.js in the page


def test_the_bundled_plotly_is_the_file_that_it_says_it_is():
    bundle = Path(render.__file__).parent / "bundle"
    script = (bundle / "plotly.min.js").read_bytes()
    said = render.bundled_plotly()
    assert hashlib.sha256(script).hexdigest() == said.sha256
    assert f"plotly.js {said.version}".encode() in script[:100]
    assert b"</script" not in script.lower()
    for name in ("plotly.js", "@plotly/d3", "d3-format"):
        assert f"{name} " in (bundle / "LICENCES.txt").read_text(encoding="utf-8")


def test_the_bundled_plotly_is_of_the_release_series_that_our_plotly_for_python_speaks():
    ours, theirs = render.bundled_plotly().version, get_plotlyjs_version()
    assert ours.split(".")[0] == theirs.split(".")[0], "run scripts/make-plotly.mjs with the newer release"


def test_a_trace_that_the_bundled_plotly_cannot_draw_is_refused():
    with pytest.raises(AnalysisError, match=r"pie.*make-plotly"):
        embed(go.Figure(go.Pie(values=[1, 2])))
    assert {trace.type for trace in (go.Scatter(), go.Heatmap())} <= render.bundled_plotly().traces


def test_the_templates_ship_with_the_package():
    import fabbbr_analysis

    templates = Path(fabbbr_analysis.__file__).parent / "templates"
    assert {path.name for path in templates.iterdir()} >= {
        "report.html.j2",
        "report.md.j2",
        "page.css",
        "page.js",
    }


@pytest.mark.parametrize(
    ("marking", "said"),
    [
        (["off", None], "off and on"),
        (["500 us", None, "2 ms", "1 ms"], "on; on, marking what has waited 500 us, 1 ms and 2 ms"),
        (["1 ms"], "on, marking what has waited 1 ms"),
    ],
)
def test_thresholds_of_marks_stand_in_their_order(runs, marking, said):
    def with_ecn(cell, threshold):
        on = threshold != "off"
        marks = {"ecn": on, "ce_threshold": Duration.parse(threshold) if on and threshold else None}
        links = [
            link if link.bottleneck is None
            else link.model_copy(update={"bottleneck": link.bottleneck.model_copy(update=marks)})
            for link in cell.links
        ]  # fmt: skip
        return cell.model_copy(update={"links": tuple(links), "ecn": on})

    manifest = runs[0].manifest
    cells = tuple(with_ecn(cell, threshold) for cell, threshold in zip(manifest.cells, marking, strict=False))
    facts = {fact.name: fact.value for fact in conditions(manifest.model_copy(update={"cells": cells}))}
    assert facts["ECN"] == said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([{}], "codel"),
        ([{"aqm_target": "20 ms"}, {"aqm_target": "5 ms"}], "codel (target 5 ms and 20 ms)"),
        (
            [{"aqm_target": "20 ms", "aqm_interval": "1 s"}, {"aqm": "cake", "aqm_interval": "300 ms"}],
            "cake (interval 300 ms) and codel (target 20 ms, interval 1 s)",
        ),
    ],
)
def test_what_an_aqm_is_told_stands_with_its_name(runs, asked, said):
    manifest = runs[0].manifest

    def told(cell, settings):
        queue = cell.bottleneck.model_dump() | {"aqm": "codel"} | settings
        (name,) = cell.bottlenecks
        told = {"bottleneck": Bottleneck.model_validate(queue)}
        links = (link.model_copy(update=told) if link.name == name else link for link in cell.links)
        return cell.model_copy(update={"links": tuple(links)})

    cells = tuple(map(told, manifest.cells, asked))
    facts = {fact.name: fact.value for fact in conditions(manifest.model_copy(update={"cells": cells}))}
    assert facts["Queue discipline"] == said
