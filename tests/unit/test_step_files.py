"""Steps that stand in a table beside the experiment file."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr import limits
from fabbbr.errors import PlanError, SpecError
from fabbbr.plan import step_files
from fabbbr.plan.opening import open_plan
from fabbbr.units import Duration, Rate, Ratio

TEXT = """id: made
title: made for a test
slice: {slice}
path: {{rate: 50 Mbit/s, rtt: 40 ms{path}}}
steps: {steps}
flows: [{{cca: cubic, duration: 60 s}}]
repeat: 1
{more}
"""


@pytest.fixture
def planned(tmp_path):
    def plan(table=None, steps="flight.csv", slice_="two_site", path="", more=""):
        if table is not None:
            (tmp_path / "flight.csv").write_text(table, encoding="utf-8")
        file = tmp_path / "made.yaml"
        text = TEXT.format(slice=slice_, steps=steps, path=path, more=more)
        file.write_text(text, encoding="utf-8")
        return open_plan(str(file), seed=1).cells

    return plan


def test_a_table_says_what_the_same_list_says(planned):
    (by_table,) = planned(
        "at,rate,rtt,loss,buffer,link\n"
        "15 s,,55 ms,100 %,,\n"
        "15.1 s,,,0 %,,\n"
        "\n"
        "30 s, 20 Mbit/s ,,,1 BDP,trunk\n"
    )
    (by_list,) = planned(
        steps="[{at: 15 s, rtt: 55 ms, loss: 100 %}, {at: 15.1 s, loss: 0 %},"
        " {at: 30 s, rate: 20 Mbit/s, buffer: 1 BDP, link: trunk}]"
    )
    assert by_table.model_copy(update={"steps_file": None}) == by_list
    assert (by_table.steps_file, by_list.steps_file) == ("flight.csv", None)
    first, second, third = by_table.steps
    assert (first.at, first.rtt, first.loss.rate) == (
        Duration.parse("15 s"),
        Duration.parse("55 ms"),
        Ratio.parse("100 %"),
    )
    assert (first.rate, second.loss.rate, third.rate) == (None, Ratio(0), Rate.parse("20 Mbit/s"))


def test_what_a_run_does_not_last_to_see_is_left(planned):
    (cell,) = planned("at,rate\n59 s,20 Mbit/s\n60 s,30 Mbit/s\n1000 s,1 Mbit/s\n")
    assert [step.at.seconds for step in cell.steps] == [59]


def test_a_table_may_be_an_axis(planned, tmp_path):
    (tmp_path / "calm.csv").write_text("at,rtt\n30 s,50 ms\n", encoding="utf-8")
    cells = planned("at,rtt\n20 s,90 ms\n", steps="$sky", more="vary: {sky: [calm.csv, flight.csv]}")
    assert {cell.axes["sky"]: cell.steps[0].rtt for cell in cells} == {
        "calm.csv": Duration.parse("50 ms"),
        "flight.csv": Duration.parse("90 ms"),
    }


def test_one_saved_by_a_spreadsheet_is_read():
    (row,) = step_files.parse('\ufeffat,loss\r\n"1,5 s",\r\n'.replace("1,5", "1.5"), source="s").rows
    assert row[1].at == Duration.parse("1.5 s")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "flight.csv:1: its heading has no column at (it is empty); begin with a line such as"),
        ("rate\n1 Mbit/s\n", "flight.csv:1: its heading has no column at (rate); begin with"),
        ("at,delay\n1 s,5 ms\n", "flight.csv:1: 'delay': unknown key; did you mean 'rtt'? (known: at, link"),
        ("at;rate\n1 s;5 Mbit/s\n", "flight.csv:1: 'at;rate': separate the columns by commas"),
        ("at,rate,rate\n1 s,5 Mbit/s,\n", "flight.csv:1: two columns are called rate; keep one"),
        ("at,rate\n", "flight.csv: has no steps; write one on each line below at,rate"),
        ("at,rate\n1 s,5\n", "flight.csv:2: rate: '5' is not a rate"),
        ("at,rate\n,5 Mbit/s\n", "flight.csv:2: at: is missing"),
        ("at,rate\n1 s,5 Mbit/s,7\n", "flight.csv:2: 3 cells, and the heading has 2; quote a cell"),
        ("at,rate\n1 s,\n", "flight.csv:2: changes nothing; give rate, rtt, buffer or loss"),
        ("at,rate\n1 s,1 bit/s\n", "flight.csv:2: rate: 1 bit/s is out of range; give 8 kbit/s to 1 Tbit/s"),
        ("at,rate,link\n1 s,1 Mbit/s,trnk\n", "flight.csv:2: link: the slice has no link 'trnk'"),
        ("at,rtt,link\n1 s,10 ms,access\n", "flight.csv:2: rtt: link access has no delay of its own"),
        ("at,rate,link\n1 s,1 Mbit/s,access\n", "flight.csv:2: link access has no queue"),
        ("at,rate,buffer\n1 s,8 kbit/s,1 ms\n", "flight.csv:2: buffer: a buffer of 1 ms is 1 bytes"),
    ],
)
def test_a_mistake_in_a_table_is_told_with_its_line(planned, table, said):
    with pytest.raises((SpecError, PlanError), match=re.escape(said)) as caught:
        planned(table)
    assert "made.yaml:5: steps" in str(caught.value)


def test_all_mistakes_of_a_table_are_told_at_once_up_to_a_number(planned):
    with pytest.raises(SpecError) as caught:
        planned("at,rate\n" + "1 s,slow\n" * 1000)
    assert str(caught.value).count("is not a rate") == limits.MISTAKES_LOOKED_FOR


def test_one_that_is_missing_or_too_long_is_refused(planned, monkeypatch):
    with pytest.raises(SpecError, match=r"flight\.csv"):
        planned()
    monkeypatch.setattr(limits, "STEPS", 3)
    with pytest.raises(SpecError, match="more than 3 steps; cut it"):
        planned("at,rate\n" + "1 s,5 Mbit/s\n" * 4)


@given(text=st.text(alphabet='at,rte;"\n\r 1sM%\x00', max_size=60))
def test_any_text_is_read_or_refused_with_its_name(text):
    said = "any.csv"
    try:
        rows = step_files.parse("at,rate\n" + text, source="any.csv").rows
    except SpecError as error:
        rows, said = (), str(error)
    assert rows or said != "any.csv"
    assert all(line.startswith("any.csv") for line in said.splitlines())
