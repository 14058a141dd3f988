"""What changed between two runs, as sentences: B against A, in the units of figures."""

import pandas as pd
import pytest

from fabbbr_analysis.report.changes import all_the_same, sentences

NAN = float("nan")


def told(verdict, *, metric="goodput_bps", a=100e6, b=80e6, ratio=(1.25, 1.2, 1.3), n=5, exact=False):
    value, low, high = ratio
    row = {
        "metric": metric, "verdict": verdict, "mean_a": a, "mean_b": b, "n_a": n, "n_b": n,
        "ratio": value, "ratio_low": low, "ratio_high": high, "exact": exact, "same": False,
    }  # fmt: skip
    return list(sentences(pd.DataFrame([row])))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        # 1 / 1.25 − 1 = −20 %; 1 / 1.3 − 1 = −23.1 %; 1 / 1.2 − 1 = −16.7 %.
        ({"verdict": "changed"}, "Goodput fell from 100 to 80.0 Mbit/s, by −20.0 % [−23.1, −16.7]."),
        (
            {"verdict": "changed", "b": 200e6, "ratio": (0.5, 0.4, 0.8)},
            "Goodput rose from 100 to 200 Mbit/s, by 100 % [25, 150].",
        ),
        (
            {"verdict": "unclear", "metric": "rtt_median_s", "a": 0.04, "b": 0.05, "ratio": (0.8, 0.5, 2)},
            "Median RTT is undecided: from 40.0 to 50.0 ms, by 25 % [−50, 100]; more repetitions would tell.",
        ),
        (
            {"verdict": "unclear", "n": 1, "ratio": (1.25, NAN, NAN)},
            "Goodput is undecided: from 100 to 80.0 Mbit/s, by −20 %; one run of a side has no interval.",
        ),
        (
            {"verdict": "changed", "b": 0.0, "ratio": (NAN, NAN, NAN)},
            "Goodput fell from 100 to 0 Mbit/s.",
        ),
        (
            {"verdict": "changed", "n": 1, "ratio": (1.25, NAN, NAN), "exact": True},
            (
                "Goodput fell from 100 to 80.0 Mbit/s, by −20 %; nothing in these runs is random, so another "
                "seed would say the same."
            ),
        ),
        (
            {"verdict": "changed", "metric": "completion_mean_s", "a": 0.1, "b": 0.08},
            "Mean flow completion time fell from 100 to 80.0 ms, by −20.0 % [−23.1, −16.7].",
        ),
        (
            {"verdict": "changed", "metric": "completion_mean_s", "a": 1, "b": 0.8},
            "Mean flow completion time fell from 1.00 to 0.800 s, by −20.0 % [−23.1, −16.7].",
        ),
        ({"verdict": "unchanged"}, "Unchanged (within 5 %): goodput."),
        ({"verdict": "only in a", "metric": NAN}, "Only in run A."),
        ({"verdict": "only in b", "metric": NAN}, "Only in run B."),
    ],
)
def test_a_comparison_is_a_sentence(how, said):
    assert told(**how) == [said]


VERDICTS = {"goodput_bps": "unchanged", "jain_flows": "changed", "rtt_median_s": "unchanged"}


def test_what_did_not_change_is_one_sentence_after_the_others():
    means = {
        "mean_a": 1.0,
        "mean_b": 2.0,
        "n_a": 5,
        "n_b": 5,
        "ratio": 0.5,
        "ratio_low": 0.5,
        "ratio_high": 0.5,
        "exact": False,
        "same": False,
    }
    rows = [{"metric": metric, "verdict": verdict, **means} for metric, verdict in VERDICTS.items()]
    first, last = sentences(pd.DataFrame(rows))
    assert first.startswith("Jain")
    assert last == "Unchanged (within 5 %): goodput and median RTT."


def test_what_is_the_same_in_every_run_is_said_to_be_so():
    rows = pd.DataFrame(
        {
            "condition": "x", "metric": ["goodput_bps", "rtt_median_s", "retransmit_ratio"],
            "verdict": "unchanged", "same": [True, False, True],
        }
    )  # fmt: skip
    assert list(sentences(rows)) == [
        "The same in every run: goodput and retransmission ratio.",
        "Unchanged (within 5 %): median RTT.",
    ]
    assert all_the_same(rows) == all_the_same(rows.iloc[:0]) == ""
    same = pd.concat([rows.assign(same=True, condition=name) for name in ("x", "y")])
    assert all_the_same(same) == "Run by run the two are the same at 2 conditions, to the last digit"
    only = pd.DataFrame({"condition": ["z"], "metric": [NAN], "verdict": ["only in a"], "same": [NAN]})
    assert all_the_same(pd.concat([same, only])) == ""
