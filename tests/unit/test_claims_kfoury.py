"""Kfoury's and KNIT6's claims on made-up runs: which runs and which flows each of them looks at."""

import pandas as pd
import pytest
from made_up_runs import Runs, run_rows, verdicts


def flows_of(runs, groups):
    """Groups: (cca, how many, columns) per run; all runs have the same."""
    rows = [
        {"cell_id": cell, "cca": cca, **columns}
        for cell in runs["cell_id"]
        for cca, count, columns in groups
        for _ in range(count)
    ]
    return pd.DataFrame(rows)


def joined(*parts):
    """One run set of several conditions, each with its flows."""
    rows = [
        run_rows([condition], repeat=3).assign(
            cell_id=lambda own, n=number: f"{n}:" + own["cell_id"], condition=f"c{number}"
        )
        for number, (condition, _) in enumerate(parts)
    ]
    flows = [flows_of(own, groups) for own, (_, groups) in zip(rows, parts, strict=True)]
    return pd.concat(rows, ignore_index=True), pd.concat(flows, ignore_index=True)


def cell(cca, **columns):
    return {"ccas": cca, "buffer_bdp": 1.0, "loss_ratio": None, "rtt_s": 0.02, **columns}


def made(experiment, *parts):
    runs, flows = joined(*parts)
    return Runs(experiment, runs, flows)


def test_the_share_is_that_of_two_cubic_beside_ten_bbr2():
    def numbers(cubic, bbr2, share):
        each = {"cubic": share / cubic, "bbr2": (1 - share) / bbr2}
        return cell("bbr2,cubic"), [
            (cca, count, {"goodput_bps": each[cca] * 1e8})
            for cca, count in (("cubic", cubic), ("bbr2", bbr2))
        ]

    def judged(share):
        return verdicts(made("kfoury_5_5b", numbers(2, 10, share), numbers(2, 1, 0.9)))["F12.1"]

    near, far = judged(2 / 12 + 0.01), judged(2 / 12 - 0.05)
    assert (near.verdict, near.value) == ("reproduced", pytest.approx(0.01))
    assert (far.verdict, far.value) == ("not reproduced", pytest.approx(0.05))


def test_the_mean_of_the_grid_counts_each_of_its_cells_once_and_no_loss_alone():
    def grid(buffer, jain, **columns):
        own = cell("bbr2,cubic", buffer_bdp=buffer, jain_flows=jain, **columns)
        return own, [("cubic", 1, {"goodput_bps": 1.0})]

    cells = [
        grid(buffer, jain, rate_bps=rate)
        for buffer, jains in ((0.1, (0.6, 0.8)), (1, (0.9, 0.9)), (10, (0.7, 0.9)))
        for rate, jain in zip((20e6, 100e6), jains, strict=True)
    ]
    found = verdicts(made("kfoury_5_5c", *cells, grid(10, 0.0, rate_bps=20e6, loss_ratio=1e-4)))["F13.1"]
    assert found.verdict == "reproduced"
    assert [part.value for part in found.details] == [pytest.approx(0.1), pytest.approx(0.1)]


def test_ten_of_one_kind_and_one_of_the_other_can_be_fair():
    def behind(aqm, ecn, cubic, bbr2, rates, buffer=1.0):
        own = cell("bbr2,cubic", aqm=aqm, ecn=ecn, buffer_bdp=buffer)
        return own, [
            (cca, count, {"goodput_bps": rate})
            for cca, count, rate in (("cubic", cubic, rates[0]), ("bbr2", bbr2, rates[1]))
        ]

    fair, unfair = (9.0, 9.0), (9.0, 1.0)
    runs = [
        behind("cake", False, 10, 1, fair), behind("fq_codel", False, 10, 1, fair),
        behind("fq_codel", True, 10, 1, fair), behind("taildrop", False, 10, 1, unfair),
        behind("taildrop", False, 1, 1, unfair, 100.0), behind("taildrop", False, 10, 10, unfair, 100.0),
    ]  # fmt: skip
    found = verdicts(made("kfoury_5_8", *runs))
    assert (found["F8.1"].verdict, found["F8.1"].value) == ("reproduced", pytest.approx(1.0))
    assert (found["F8.2"].verdict, found["F8.2"].value) == ("reproduced", pytest.approx(100 / 164))
    marked = behind("fq_codel", True, 1, 1, unfair)
    assert verdicts(made("kfoury_5_8", *runs, marked))["F8.1"].verdict == "not reproduced"


def test_completion_is_that_of_either_half_and_a_flow_that_never_ended_is_no_time():
    def halves(cca, *times, loss=None):
        own = cell(",".join(sorted({"cubic", cca})), loss_ratio=loss)
        return own, [("cubic", 2, {"completion_s": times[0]}), (cca, 2, {"completion_s": times[1]})]

    mixed = [halves("bbr1", 80.0, 40.0), halves("bbr2", 90.0, 50.0), halves("bbr2", 99.0, 90.0, loss=0.01)]
    alone = [
        (cell(cca), [(cca, 2, {"completion_s": time})])
        for cca, time in (("cubic", 88.0), ("bbr1", 90.0), ("bbr2", 91.0))
    ]
    found = verdicts(made("kfoury_5_7", *mixed, *alone))
    assert (found["F7.2"].verdict, found["F7.2"].value) == ("reproduced", pytest.approx(1.1))
    assert (found["F7.1"].verdict, found["F7.1"].value) == ("reproduced", pytest.approx(91 / 88))
    assert "no value" not in found["F7.2"].reason
    stuck = made("kfoury_5_7", *mixed[1:], *alone, halves("bbr1", 80.0, None))
    assert "3 certified runs have no value" in verdicts(stuck)["F7.2"].reason


def test_paced_is_what_fq_limits_to_the_papers_rate():
    def paced(limit, used, loss=None, rtt=0.024):
        own = cell(
            "cubic",
            axis_maxrate=limit,
            loss_ratio=loss,
            goodput_bps=used * 2e8,
            rate_bps=2e8,
            jain_flows=0.98,
        )
        return own, [("cubic", 2, {"rtt_mean_s": rtt, "rtt_propagation_s": 0.02})]

    both = [paced("8500 kbit/s", 0.81), paced("200 Mbit/s", 0.95, rtt=0.2)]
    lossy = [paced("8500 kbit/s", 0.7, loss=0.01), paced("200 Mbit/s", 0.6, loss=0.01)]
    found = verdicts(made("kfoury_5_9", *both, *lossy))
    assert [part.verdict for part in found["F9.1"].details][2:] == ["reproduced"] * 2
    assert found["F9.1"].details[3].value == pytest.approx(4.0)
    assert found["F9.2"].value == pytest.approx(0.7 / 0.6, rel=0.03)
    runs = made("kfoury_5_9", *both)
    runs.certified = runs.certified.drop(columns="axis_maxrate")
    assert "does not vary maxrate" in verdicts(runs)["F9.1"].reason


def test_streams_at_100_gbit_are_not_judged_where_no_host_is_slow_and_few_streams_are():
    def streams(cca, count, mtu, gbps, rate, clock):
        own = cell(cca, mtu_bytes=mtu, goodput_bps=gbps * 1e9, rate_bps=rate, clock=clock)
        return own, [(cca, 1, {"streams": count})]

    def table(rate, clock):
        cells = [
            streams(cca, count, mtu, speed * mtu / 1500, rate, clock)
            for mtu in (1500, 9000)
            for count in (1, 2)
            for cca, speed in (("bbr1", 10.0 * count), ("cubic", 0.6 * count))
        ]
        return verdicts(made("knit6_e4", *cells))

    scaled = table(1e9, "virtual")
    assert scaled["K4.6"].verdict == "reproduced"
    assert scaled["K4.6"].value == pytest.approx(10 / 0.6, rel=0.03)
    assert scaled["K4.1"].verdict == "not run"
    assert "fabbbr slice run streams knit6_e4 --full" in scaled["K4.1"].reason
    assert table(100e9, "virtual")["K4.1"].verdict == "not run"
    real = table(100e9, "real")
    assert (real["K4.1"].verdict, real["K4.1"].value) == ("reproduced", 1.0)
    assert real["K4.5"].verdict == "reproduced"


def test_estimates_are_compared_between_the_two_places_of_the_delay():
    runs, flows = joined(
        *((cell(cca, axis_at_sender=where), []) for cca in ("bbr1", "bbr2") for where in ("45 ms", "0 s"))
    )
    emulated = runs["axis_at_sender"] == "45 ms"
    samples = [
        {"cell_id": cell_id, "t_s": number * 0.1, "side": side, "bbr_bw_bps": share * 1e8}
        for cell_id, late in zip(runs["cell_id"], emulated, strict=True)
        for side, shares in (("sender", (0.9, 0.94, 0.99, 0.99) if late else (0.99,) * 4), ("receiver", (0,)))
        for number, share in enumerate(shares)
    ]
    found = verdicts(Runs("knit6_cdf", runs, flows, all_sockets=pd.DataFrame(samples)))
    assert (found["KM.1"].verdict, found["KM.1"].value) == ("reproduced", pytest.approx(0.5))
    assert (found["KM.2"].verdict, found["KM.2"].value) == ("reproduced", pytest.approx(0.99))
