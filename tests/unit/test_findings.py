"""The strongest results of an experiment, in sentences."""

import pandas as pd

from fabbbr_analysis.report.findings import findings, goodput_of
from fabbbr_analysis.summary import _TELLING, summarise

SURE = dict.fromkeys(_TELLING[1:], 1.0) | {"clock": "virtual"}
"""Of runs in which nothing is random."""


def few_runs(goodputs: dict[tuple[str, str], list[float]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "experiment": "x",
                "condition": f"{cca} {loss}",
                "status": "certified",
                "ccas": cca,
                "axis_cca": cca,
                "axis_loss": loss,
                "loss_ratio": float(loss.split()[0]) / 100,
                "goodput_bps": bps,
            }
            for (cca, loss), values in goodputs.items()
            for bps in values
        ]
    )


def say(goodputs, **columns):
    runs = few_runs(goodputs).assign(**columns)
    return findings(runs, summarise(runs, ["goodput_bps"]))


def test_the_widest_gap_is_told_with_its_condition_and_its_ratio():
    said = say(
        {
            ("bbr1", "1 %"): [90e6, 91e6, 89e6],
            ("cubic", "1 %"): [9e6, 9.1e6, 8.9e6],
            ("bbr1", "5 %"): [80e6, 81e6, 79e6],
            ("cubic", "5 %"): [2e6, 2.1e6, 1.9e6],
        }
    )
    assert said[0].startswith(
        "At a random loss of 5\u00a0%, bbr1 carries 80.0 [77.5, 82.5]\u00a0Mbit/s, cubic 2.00"
    )
    assert said[0].endswith("40 times as much.")


def test_a_gap_that_is_wide_by_chance_gives_way_to_one_that_is_certain():
    said = say(
        {
            ("bbr1", "1 %"): [90e6, 91e6, 89e6],
            ("cubic", "1 %"): [1e6, 1.01e6, 0.99e6],
            ("bbr1", "5 %"): [40e6, 60e6, 50e6],
            ("cubic", "5 %"): [0.01e6, 0.9e6, 0.1e6],
        }
    )
    assert said[0].startswith("At a random loss of 1\u00a0%")


def test_a_gap_within_the_intervals_is_not_told():
    said = say({("bbr1", "1 %"): [60e6, 100e6], ("cubic", "1 %"): [50e6, 80e6]})
    assert not any("times as much" in sentence for sentence in said)


def test_holding_up_ends_at_the_first_condition_with_too_little():
    said = say(
        {
            ("bbr1", "1 %"): [90e6, 91e6],
            ("bbr1", "5 %"): [85e6, 86e6],
            ("bbr1", "10 %"): [10e6, 11e6],
            ("bbr1", "15 %"): [90e6, 91e6],
        }
    )
    assert said == [
        (
            "As the random loss rises from 1\u00a0%, at least 90\u00a0% of the goodput is left "
            "up to 5\u00a0% with bbr1."
        )
    ]


def test_without_a_certified_run_there_is_no_result():
    runs = few_runs({("bbr1", "1 %"): [1e6, 2e6]}).assign(status="failed")
    summary = summarise(runs, ["goodput_bps"])
    assert findings(runs, summary) == []
    assert goodput_of(runs, summary) == "No certified run has a goodput, so there is no result."


def test_a_mean_that_is_not_random_is_as_good_as_its_own_ends():
    goodputs = {("bbr1", "1 %"): [90e6, 91e6, 89e6], ("cubic", "1 %"): [9e6, 9e6, 9e6]}
    (told,) = [each for each in say(goodputs, **SURE) if "times as much" in each]
    assert told.endswith("cubic 9.00\u00a0Mbit/s: 10 times as much.")
