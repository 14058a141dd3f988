"""Conditions that are run under several names are told before they are run."""

import json

import pytest

from fabbbr.plan import definitions, expand
from fabbbr.plan.alike import alike, alike_in_words
from fabbbr.spec import read

RIVALS = """\
id: rivals
title: None, one or two of a rival
slice: dumbbell
path: {rate: 10 Mbit/s, rtt: 20 ms}
flows:
  - {cca: reno, duration: 5 s}
  - {cca: $cca, count: $rivals, duration: 5 s}
vary: {cca: [cubic, bbr1, bbr3], rivals: RIVALS}
repeat: 2
"""


def cells(rivals, more=""):
    text = RIVALS.replace("RIVALS", rivals) + more
    return expand.cells(read.parse(text, source="f.yaml"), definitions.load, seed=1)


def test_where_there_is_no_rival_all_of_them_are_one_condition():
    assert [set(each) for each in alike(cells("[0, 1, 2]"))] == [
        {"cca=cubic,rivals=0", "cca=bbr1,rivals=0", "cca=bbr3,rivals=0"}
    ]


@pytest.mark.parametrize(
    ("rivals", "more", "said"),
    [
        ("[0, 1, 2]", "", "2 of 9 conditions are others under a second name ("),
        (
            "[0, 1]",
            "except: [{cca: bbr1, rivals: 0}]\n",
            "1 of 5 conditions is another under a second name (",
        ),
        ("[0, 1]", "except: [{cca: bbr1, rivals: 0}, {cca: bbr3, rivals: 0}]\n", ""),
        ("[1, 2]", "", ""),
    ],
)
def test_they_are_counted_and_one_is_named_with_the_remedy(rivals, more, said):
    told = alike_in_words(cells(rivals, more))
    assert told.startswith(said)
    assert bool(told) == bool(said)
    assert not told or ("rivals=0 is cca=" in told and "; except leaves " in told)


def test_a_plan_tells_it(fabbbr, tmp_path):
    file = tmp_path / "f.yaml"
    file.write_text(RIVALS.replace("RIVALS", "[0, 1]"))
    _, printed, _ = fabbbr("plan", str(file))
    assert "2 of 6 conditions are others under a second name" in " ".join(printed.split())
    _, printed, _ = fabbbr("plan", str(file), "--json")
    assert [len(each) for each in json.loads(printed)["alike"]] == [3]
