"""How a link follows its trace, packet by packet or as rates over bins, and where a reader is told."""

import pytest

from fabbbr.commands.plan import row_of
from fabbbr.plan.opening import open_plan
from fabbbr_analysis.answers.warned import _two_ways_of_a_trace
from fabbbr_analysis.report.provenance import conditions, gist

TEXT = """id: made
title: made for a test
slice: two_site
path: {{trace: made.up, {begins}rtt: 20 ms, buffer: 100 kB, aqm: {aqm}}}
flows: [{flow}]
repeat: {repeat}
{more}
"""


class Planned:
    """As much of a run set as is known before it has run."""

    def __init__(self, cells):
        self.plan = {cell.id: cell for cell in cells}


@pytest.fixture
def manifest(tmp_path):
    def plan(aqm, more="", begins="", repeat=1, flow="{cca: cubic, duration: 2 s}"):
        (tmp_path / "made.up").write_text(
            "".join(f"{at}\n" for at in (*range(2, 2000, 2), *range(2000, 3001))), encoding="ascii"
        )
        file = tmp_path / "made.yaml"
        file.write_text(
            TEXT.format(aqm=aqm, more=more, begins=begins, repeat=repeat, flow=flow), encoding="utf-8"
        )
        return open_plan(str(file), seed=1)

    return plan


@pytest.mark.parametrize(
    ("aqm", "more", "row", "fact"),
    [
        ("taildrop", "", "8 Mbit/s by made.up", "made.up, packet by packet"),
        ("codel", "", "8 Mbit/s by made.up in bins of 100 ms", "made.up, as a rate per 100 ms"),
        (
            "$aqm",
            "vary: {aqm: [taildrop, codel, pie]}",
            "8 Mbit/s by made.up",
            "made.up, packet by packet in 1 of 3 cells and as a rate per 100 ms in 2 of 3 cells",
        ),
    ],
)
def test_a_plan_and_a_report_say_how_it_is_followed(manifest, aqm, more, row, fact):
    found = manifest(aqm, more)
    assert row in {row_of(cell)["bottleneck"] for cell in found.cells}
    told = {each.name: each.value for each in conditions(found)}
    assert told["Link trace"] == fact
    assert told["Bottleneck"] == "8 Mbit/s on average (made.up)"
    assert "8 Mbit/s on average (made.up), RTT 20 ms" in gist(found).replace("\u00a0", " ")


def test_its_rates_are_no_changes_that_somebody_asked_for(manifest):
    uneven = manifest("codel", "steps: [{at: 1 s, rtt: 30 ms}]")
    assert any(step.rate is not None for step in uneven.cells[0].steps)
    told = {each.name: each.value for each in conditions(uneven)}
    assert told["Changes while flows run"] == "at 1 s RTT 30 ms"
    assert "Changes while flows run" not in {each.name for each in conditions(manifest("codel"))}


def test_where_it_begins_is_drawn_for_each_repetition_and_the_same_in_all_conditions(manifest):
    found = manifest("$aqm", "vary: {aqm: [taildrop, codel]}", begins="trace_start: random, ", repeat=5)
    starts = {}
    for cell in found.cells:
        starts.setdefault(cell.repetition, set()).add(cell.bottleneck.trace_start)
    assert [len(each) for each in starts.values()] == [1] * 5
    assert len(set.union(*starts.values())) == 5
    assert all(cell.shares_draws for cell in found.cells)
    told = {each.name: each.value for each in conditions(found)}
    assert told["Link trace"].endswith(
        "; from an instant drawn for each repetition, the same in all conditions"
    )
    assert (
        found.cells
        == manifest("$aqm", "vary: {aqm: [taildrop, codel]}", begins="trace_start: random, ", repeat=5).cells
    )


def test_a_run_that_begins_elsewhere_is_another_piece_of_the_trace(manifest):
    cells = {
        begins: manifest("$aqm", "vary: {aqm: [taildrop, codel]}", begins=begins).cells
        for begins in ("", "trace_start: 0 s, ", "trace_start: 1 s, ")
    }
    pieces = {
        begins: [(cell.bottleneck.trace and cell.bottleneck.trace.gaps_ms, cell.steps) for cell in found]
        for begins, found in cells.items()
    }
    assert pieces[""] == pieces["trace_start: 0 s, "] != pieces["trace_start: 1 s, "]
    assert not any(cell.shares_draws for found in cells.values() for cell in found)


def test_packet_by_packet_it_goes_on_for_as_long_as_a_transfer_takes(manifest):
    (cell,) = manifest("taildrop", flow="{cca: cubic, size: 1 MB}").cells
    assert (cell.bottleneck.trace.opportunities, cell.steps) == (2000, ())


def test_what_is_compared_across_both_is_said_to_be(manifest):
    (said,) = _two_ways_of_a_trace(Planned(manifest("$aqm", "vary: {aqm: [taildrop, codel]}").cells))
    assert said.startswith("In aqm=codel the trace is a rate per 100 ms")
    for one in ("taildrop", "codel"):
        assert not list(_two_ways_of_a_trace(Planned(manifest(one).cells)))
