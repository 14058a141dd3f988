"""What a report's first lines say where flows have no rival and only the conditions are varied."""

import numpy as np
import pytest
from plain_answers import Told, group, said

BUFFERS = ("0.1 BDP", "0.5 BDP", "2 BDP", "8 BDP")
RATES = (6.0, 9.0, 9.7, 9.8)


def over_buffers(rates, *, waits=None, name="buffer", texts=BUFFERS, **more):
    told = Told()
    for place, (text, rate) in enumerate(zip(texts, rates, strict=True)):
        values = {"queue_delay_median_s": waits[place]} if waits else {}
        noisy = [rate * 1e6 + noise for noise in (-2e4, 0, 2e4)]
        one = group("cubic", noisy, **values, **more)
        told.condition(f"{name}={text}", one, ccas="cubic", axes={name: text})
    return [said(each) for each in told.answer().headline]


def test_of_one_congestion_control_the_best_and_the_worst_place_are_told():
    first, *_ = over_buffers(RATES)
    assert first.startswith("cubic has most at a buffer of 8 BDP, 9.80")
    assert "] Mbit/s, and least at a buffer of 0.1 BDP, 6.00" in first
    assert "] Mbit/s: 1.6 times as much, difference 3.80" in first
    assert first.endswith("] Mbit/s (3 runs; the interval allows for 6 pairs).")


@pytest.mark.parametrize(
    ("rates", "enough"),
    [
        (RATES, "From a buffer of 2 BDP on the mean is within 5 % of the best."),
        ((9.8, 9.7, 9.0, 6.0), "Up to a buffer of 0.5 BDP the mean is within 5 % of the best."),
        ((9.8, 9.8, 9.8, 9.6), None),  # everywhere
        ((9.8, 6.0, 9.8, 6.0), None),  # no value is an edge
        ((6.0, 9.8, 9.8, 6.0), None),
    ],
)
def test_how_much_of_a_number_is_enough_is_told_where_there_is_an_edge(rates, enough):
    told = [each for each in over_buffers(rates) if "of the best" in each]
    assert told == ([enough] if enough else [])


def test_names_have_no_edge():
    told = over_buffers((6.0, 9.8), name="aqm", texts=("cake", "taildrop"))
    assert [each.startswith("cubic has most at an AQM of taildrop") for each in told] == [True]


@pytest.mark.parametrize(
    ("waits", "tells"),
    [((0.0, 0.002, 0.02, 0.2), True), ((0.1, 0.11, 0.12, 0.13), False), ((0, 1e-4, 2e-4, 4e-4), False)],
)
def test_what_it_costs_in_queueing_is_told_where_that_differs(waits, tells):
    told = [each for each in over_buffers(RATES, waits=waits) if each.startswith("Packets queue")]
    assert bool(told) is tells
    if tells:
        (said_once,) = told
        assert "for 0 ms at a buffer of 0.1 BDP and for 200 ms" in said_once


def test_transfers_are_fastest_and_slowest_somewhere():
    told = Told()
    for streams, took in (("1", 4.0), ("4", 1.0), ("16", 1.02)):
        times = {f"completion_{name}_s": [took, took * 1.01, took * 0.99] for name in ("median", "p95")}
        one = group("copy", 1e6, sized=True, **times)
        told.condition(f"streams={streams}", one, ccas="cubic", axes={"streams": streams})
    *_, ends, enough = map(said, told.answer().headline)
    assert ends.startswith("Transfers of copy are fastest at 4 streams, 1.00")
    assert "and slowest at 1 stream, 4.00" in ends
    assert ": 4.0 times as long, difference 3.00 [" in ends
    assert enough == "From 4 streams on the mean is within 5 % of the best."


def test_where_congestion_controls_are_compared_the_places_are_not():
    told = Told()
    for buffer in BUFFERS:
        for cca in ("cubic", "bbr3"):
            place = {"cca": cca, "buffer": buffer}
            told.condition(f"{place}", group(cca, [1e6, 2e6, 3e6]), ccas=cca, axes=place)
    assert not [each for each in told.answer().headline if "has most" in each]


def test_of_places_that_differ_by_chance_alone_one_in_twenty_at_most_is_said_to_be_best():
    """Of normal values, as the interval supposes; with six places, so fifteen pairs to pick from."""
    generator, trials, clear = np.random.default_rng(1), 200, 0
    for _ in range(trials):
        told = Told()
        for number in range(6):
            rates = list(generator.normal(1e7, 1e6, size=3))
            told.condition(f"n={number}", group("cubic", rates), ccas="cubic", axes={"name": f"x{number}"})
        (first,) = told.answer().headline
        clear += "times as much" in first or " % more" in first
    assert clear <= 0.05 * trials + 2 * (0.05 * 0.95 * trials) ** 0.5


def test_places_that_differ_in_rate_are_compared_in_how_much_of_it_is_used():
    told = Told()
    for text, rate_bps, goodput in (("2 Mbit/s", 2e6, 1.8e6), ("20 Mbit/s", 20e6, 12e6)):
        noisy = [goodput, goodput * 1.01, goodput * 0.99]
        flow = group("cubic", noisy, ceiling_bps=rate_bps)
        told.condition(text, flow, ccas="cubic", axes={"rate": text}, rate_bps=rate_bps)
    first = said(told.answer().headline[0])
    assert first.startswith(
        "cubic fills most of the link at a bottleneck rate of 2 Mbit/s, 90.0 [87.8, 92.2] %, and least at a "
        "bottleneck rate of 20 Mbit/s, 60.0 [58.5, 61.5] %: difference 30.0 ["
    )
    assert "Of the capacity" in {measure.title for measure in told.answer().measures}
