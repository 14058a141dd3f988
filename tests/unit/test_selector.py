"""Selecting cells: by what values mean, or by a glob over ids; never silently nothing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import UsageError
from fabbbr.plan import opening
from fabbbr.plan.selector import select

CELLS = opening.open_plan("cardwell_f10", seed=1, profile="quick").cells
LOSSES = ["0.001 %", "0.01 %", "0.1 %", "1 %", "5 %", "10 %", "15 %", "25 %"]


@given(
    losses=st.sets(st.sampled_from(LOSSES), min_size=1),
    ccas=st.sets(st.sampled_from(["cubic", "bbr1"]), min_size=1),
)
def test_the_values_of_axes_pick_exactly_the_cells_that_have_them(losses, ccas):
    picked = select(CELLS, f"loss={'|'.join(losses)},cca={'|'.join(ccas)}")
    assert list(picked) == [
        cell for cell in CELLS if cell.axes["loss"] in losses and cell.axes["cca"] in ccas
    ]


@pytest.mark.parametrize("spelt", ["loss=1%", "loss=1 %", "loss=0.01", "loss=1.0%", "loss=10000 ppm"])
def test_values_are_compared_by_what_they_mean(spelt):
    assert {cell.axes["loss"] for cell in select(CELLS, spelt)} == {"1 %"}


@pytest.mark.parametrize(
    "spelt", ["rate=20Mbit", "rate=20 Mbit/s", "rate=20Mbit/s", "rate=0.02 Gbit/s", "rate=20Mbit|20 Mbit/s"]
)
def test_a_value_may_be_spelt_as_in_the_ids_of_cells(tmp_path, spelt):
    (tmp_path / "f.yaml").write_text(
        "id: f\ntitle: t\nslice: two_site\npath: {rate: $rate, rtt: 40 ms}\n"
        "flows: [{cca: cubic, duration: 5 s}]\nvary: {rate: [10 Mbit/s, 20 Mbit/s]}\nrepeat: 1\n"
    )
    cells = opening.open_plan(str(tmp_path / "f.yaml"), seed=1).cells
    assert [cell.id for cell in select(cells, spelt)] == ["rate=20Mbit,r1"]
    assert len(select(cells, f"{spelt}|10Mbit")) == 2


def test_a_glob_picks_by_id_and_an_id_picks_itself():
    assert {cell.repetition for cell in select(CELLS, "*,r1")} == {1}
    assert len(select(CELLS, "cca=bbr1,*")) == len(CELLS) // 2
    assert select(CELLS, CELLS[7].id) == (CELLS[7],)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("los=1%", "no axis 'los'; did you mean 'loss'? (axes: cca, loss)"),
        ("loss=3%", "axis loss has no value '3%' (values: "),
        ("loss=1%|nonsense", "axis loss has no value 'nonsense'"),
        ("cca=reno*", "no cell matches 'cca=reno*' (cells: cca="),
        ("", "no cell matches ''"),
        ("loss=1%,loss=", "no cell matches"),
    ],
)
def test_what_picks_nothing_is_refused_and_what_exists_is_listed(expression, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        select(CELLS, expression)
