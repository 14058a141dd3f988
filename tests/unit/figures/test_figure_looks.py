"""How series look, what becomes of long traces, and what is an axis."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fabbbr_analysis.figures.canvas import ticks_at
from fabbbr_analysis.figures.conditions import (
    mixes,
    place_in_words,
    places_in_words,
    value_alone,
    variants,
    varied,
)
from fabbbr_analysis.figures.sampling import keep_extremes
from fabbbr_analysis.figures.style import Palette, flow_dash, shade

# Sampling


samples = arrays.arrays(
    np.float64, st.integers(5, 400), elements=st.floats(-1e9, 1e9) | st.just(float("nan"))
)


@given(y=samples, limit=st.integers(4, 60))
def test_a_thinned_trace_is_short_and_keeps_its_ends_and_its_extremes(y, limit):
    x = np.arange(len(y), dtype=float)
    kept = keep_extremes(x, y, limit)
    assert len(kept) <= limit
    assert kept[0] == 0
    assert kept[-1] == len(y) - 1
    assert (np.diff(kept) > 0).all()
    if not np.isnan(y).all():
        assert np.nanmax(y[kept]) == np.nanmax(y)
        assert np.nanmin(y[kept]) == np.nanmin(y)


@given(y=samples)
def test_a_trace_that_is_short_enough_is_left_alone(y):
    assert list(keep_extremes(np.arange(len(y), dtype=float), y, len(y))) == list(range(len(y)))


def test_a_limit_below_two_ends_and_two_extremes_is_refused():
    with pytest.raises(ValueError, match="at least 4"):
        keep_extremes(np.arange(9.0), np.arange(9.0), 3)


# Looks


names = st.sets(st.text("abcdefgh0123456789_", min_size=1, max_size=8), max_size=12)


@given(others=names)
def test_a_known_congestion_control_looks_the_same_in_any_company(others):
    known = ("cubic", "bbr1", "bbr2", "reno", "htcp")
    assert [Palette.of(others | set(known))[name] for name in known] == [
        Palette.of(known)[name] for name in known
    ]


def test_any_two_of_fifty_series_differ_by_colour_or_by_marker():
    palette = Palette.of(f"cca{number:02}" for number in range(50))
    looks = {(look.colour, look.symbol) for look in palette.looks.values()}
    assert len(looks) == len(palette.looks)


def test_the_congestion_controls_of_the_papers_differ_by_colour_and_by_marker():
    palette = Palette.of([])
    for one, other in combinations(("cubic", "bbr1", "bbr2", "bbr3", "reno", "htcp"), 2):
        assert palette[one].colour != palette[other].colour
        assert palette[one].symbol != palette[other].symbol


@given(count=st.integers(2, 16))
def test_flows_of_one_congestion_control_have_shades_of_their_own(count):
    assert len({shade("#0072B2", place, count) for place in range(count)}) == count


def test_a_single_flow_keeps_the_colour_of_its_congestion_control():
    assert shade("#D55E00", 0, 1) == "#D55E00"
    assert flow_dash(0) == "solid"


# What varied


@pytest.mark.parametrize(
    ("column", "texts", "values", "shown", "slug"),
    [
        ("loss_ratio", ["10 %", "0.1 %", "1 %"], [0.1, 0.001, 0.01], (0.1, 1.0, 10.0), "loss"),
        ("rtt_s", ["113 ms", "300 us", "6 ms"], [0.113, 0.0003, 0.006], (0.3, 6.0, 113.0), "rtt"),
        (
            "buffer_bdp",
            ["10 BDP", "0.5 BDP", "1 BDP"],
            [9.9999, 0.49999, 0.99999],
            (0.5, 1.0, 10.0),
            "buffer",
        ),
        ("buffer_bytes", ["1 MB", "250 kB", "2 kB"], [1e6, 250e3, 2e3], (2.0, 250.0, 1000.0), "buffer"),
        ("rate_bps", ["1 Gbit/s", "10 Mbit/s", "100 Mbit/s"], [1e9, 1e7, 1e8], (10.0, 100.0, 1000.0), "rate"),
        ("n_flows", ["16", "2", "4"], [16, 2, 4], (2.0, 4.0, 16.0), "flows"),
    ],
)
def test_a_varied_number_is_an_axis_in_ascending_order_of_its_value(column, texts, values, shown, slug):
    runs = pd.DataFrame({"axis_key": texts, column: values, "ccas": "cubic"})
    (axis,) = varied(runs)
    assert axis.shown == pytest.approx(shown)
    assert (axis.slug, axis.condition.column) == (slug, column)


def test_an_axis_that_no_column_agrees_with_has_the_numbers_that_the_file_has_and_no_condition():
    runs = pd.DataFrame({"axis_loss": ["2 %", "1 %"], "loss_ratio": [0.03, 0.01], "ccas": "cubic"})
    (axis,) = varied(runs)
    assert axis.condition is None
    assert (axis.label, axis.place_of("2 %")) == ("Loss (%)", 2.0)


@pytest.mark.parametrize(
    ("texts", "label", "shown", "log"),
    [
        (["1 MB", "100 kB", "10 MB"], "Size (kB)", (100, 1000, 10_000), True),
        (["200 us", "1 ms"], "Size (ms)", (0.2, 1), False),
        (["2 Mbit/s", "0.5 Gbit/s"], "Size (Mbit/s)", (2, 500), True),
        (["16", "1"], "Size", (1, 16), False), (["2 BDP", "0.5 BDP"], "Size (BDP)", (0.5, 2), True),
    ],
)  # fmt: skip
def test_quantities_of_one_kind_are_an_axis_in_its_unit(texts, label, shown, log):
    (axis,) = varied(pd.DataFrame({"axis_size": texts, "ccas": "cubic"}))
    assert (axis.label, axis.log) == (label, log)
    assert axis.shown == pytest.approx(shown)


def test_what_is_no_quantity_everywhere_is_a_row_of_names():
    (axis,) = varied(pd.DataFrame({"axis_size": ["1 MB", "unlimited"], "ccas": "cubic"}))
    assert axis.shown is None
    assert axis.place_of("1 MB") == "1 MB"


def test_of_two_axes_that_say_the_same_the_one_first_in_the_file_is_named():
    news, olds = pd.Series(["2", "5", "8"]), pd.Series(["8", "5", "2"])
    assert [a.key for a in varied(pd.DataFrame({"axis_n": news, "axis_m": olds, "ccas": "x"}))] == ["n"]
    assert [a.key for a in varied(pd.DataFrame({"axis_m": olds, "axis_n": news, "ccas": "x"}))] == ["m"]
    switch, queue = pd.Series(["true", "false"]), pd.Series(["red", "taildrop"])
    named = pd.DataFrame({"axis_marks": switch, "axis_aqm": queue, "ccas": "x"})
    assert [a.key for a in varied(named)] == ["marks"]


def test_plain_whole_numbers_of_which_no_column_knows_are_an_axis_of_numbers():
    runs = pd.DataFrame({"axis_streams": ["1", "16", "4"], "ccas": "cubic"})
    (axis,) = varied(runs)
    assert (axis.texts, axis.shown, axis.slug) == (("1", "4", "16"), (1.0, 4.0, 16.0), "streams")


def test_plain_whole_numbers_that_follow_another_axis_are_none_of_their_own():
    runs = pd.DataFrame(
        {
            "axis_rate": ["1 Gbit/s", "10 Gbit/s"],
            "rate_bps": [1e9, 1e10],
            "axis_streams": ["2", "16"],
            "ccas": "bbr3",
        }
    )
    assert [axis.key for axis in varied(runs)] == ["rate"]


def test_what_follows_an_axis_is_said_with_it():
    runs = pd.DataFrame(
        {
            "axis_depth": ["50 kB", "1 packet", "50 kB"],
            "axis_queue": ["2 packets", "64 kB", "2 packets"],
            "axis_ecn": ["true", "false", "true"],
            "ccas": ["cubic", "cubic", "reno"],
        }
    )
    (axis,) = varied(runs)
    assert place_in_words([axis], ["50 kB"]) == "a depth of 50 kB (and a queue of 2 packets)"
    assert value_alone(axis, "1 packet") == "1 packet (and 64 kB)"
    assert axis.label.endswith(", and with it queue")


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([("8 BDP", "4", "true")], "a buffer of 8 BDP, 4 flows and ECN on"),
        ([("8 BDP", "4", "true"), ("8 BDP", "16", "true")], "a buffer of 8 BDP, 4 or 16 flows and ECN on"),
        ([("1 BDP", "4", "true"), ("8 BDP", "4", "true")], "a buffer of 1 BDP or 8 BDP, 4 flows and ECN on"),
        ([("1 BDP", "4", "true"), ("1 BDP", "4", "false")], "a buffer of 1 BDP, 4 flows and ECN on or off"),
        (
            [("1 BDP", "4", "true"), ("8 BDP", "16", "true")],
            "ECN on and a buffer of 1 BDP and 4 flows, or a buffer of 8 BDP and 16 flows",
        ),
    ],
)
def test_what_several_places_have_in_common_is_said_once(places, said):
    names = ("axis_buffer", "axis_flows", "axis_ecn")
    texts = product(("1 BDP", "8 BDP"), ("4", "16"), ("true", "false"))
    axes = varied(pd.DataFrame(texts, columns=names).assign(ccas="cubic"))
    assert places_in_words(axes, places) == said


def test_numbers_that_change_together_are_both_counted():
    runs = pd.DataFrame({"axis_newcomers": ["1", "5"], "axis_old_flows": ["5", "1"], "ccas": "cubic"})
    assert place_in_words(varied(runs), ["1"]) == "1 newcomer (and 5 old flows)"


@pytest.mark.parametrize(
    "in_order", [("5.15", "6.9", "6.12", "default"), ("h2", "h10"), ("2 hops", "10 hops", "none")]
)
def test_numbers_within_names_count_as_numbers_in_their_order(in_order):
    (axis,) = varied(pd.DataFrame({"axis_kernel": sorted(in_order), "ccas": "cubic"}))
    assert axis.shown is None
    assert axis.texts == in_order


def test_the_congestion_control_is_a_colour_and_never_an_axis():
    runs = pd.DataFrame({"axis_rival": ["bbr1", "reno"], "ccas": ["bbr1,cubic", "cubic,reno"]})
    assert varied(runs) == ()


TWO_VARIED = pd.DataFrame(
    {
        "axis_long": ["bbr3", "cubic", "bbr3", "cubic"],
        "axis_cross": ["cubic", "bbr3", "bbr3", "cubic"],
        "ccas": ["bbr3,cubic", "bbr3,cubic", "bbr3", "cubic"],
    }
)


def test_where_two_congestion_controls_are_varied_it_is_said_which_is_which():
    assert list(variants(TWO_VARIED))[:2] == ["long=bbr3, cross=cubic", "long=cubic, cross=bbr3"]
    assert list(mixes(TWO_VARIED)) == [
        "bbr3,cubic [long=bbr3, cross=cubic]", "bbr3,cubic [long=cubic, cross=bbr3]", "bbr3", "cubic",
    ]  # fmt: skip


def test_where_one_is_varied_or_none_the_names_alone_say_it():
    one = TWO_VARIED[["axis_long", "ccas"]].iloc[[2, 3]]
    assert list(variants(one)) == list(mixes(one)) == ["bbr3", "cubic"]
    none = TWO_VARIED[["ccas"]].iloc[[2]]
    assert (list(variants(none)), list(mixes(none))) == ([""], ["bbr3"])


@pytest.mark.parametrize(
    ("key", "texts", "said"),
    [
        ("hops", ["2", "10"], "2 hops"), ("streams", ["1", "16"], "1 stream"),
        ("cross", ["1", "2"], "a cross of 1"),
        ("size", ["100 kB", "10 MB"], "a size of 100 kB"), ("aqm", ["cake", "pie"], "an AQM of cake"),
        ("offloads", ["false", "true"], "offloads off"), ("ecn", ["true", "false"], "ECN on"),
    ],
)  # fmt: skip
def test_a_place_is_said_in_words(key, texts, said):
    axes = varied(pd.DataFrame({f"axis_{key}": texts, "ccas": "cubic"}))
    assert place_in_words(axes, texts[:1]) == said


def test_an_axis_with_a_zero_is_linear_because_a_logarithm_would_hide_it():
    runs = pd.DataFrame({"axis_loss": ["0 %", "1 %"], "loss_ratio": [0.0, 0.01], "ccas": "cubic"})
    (axis,) = varied(runs)
    assert not axis.log


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30, unique=True))
def test_labelled_ticks_stand_at_values_that_were_run_and_a_quarter_decade_apart(values):
    ticks = ticks_at(tuple(sorted(values)))["tickvals"]
    assert set(ticks) <= set(values)
    assert (np.diff(np.log10(ticks)) >= 0.2499).all()
