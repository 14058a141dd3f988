"""Loss that steps begin and end: exactly what comes meanwhile is lost, and the certificate counts it."""

import re

import numpy as np
import pytest
from guest.cells import experiment, run
from guest.links import ceiling_bps

pytestmark = pytest.mark.guest

BITS, RATE_BPS = 8 * 1514, 20e6


def injected(ran, cell_id=None):
    """What of the link is lost, as the certificate names it → packets offered and dropped."""
    found = {}
    for check in ran.cell(cell_id).manifest.certificate.checks:
        if check.name.startswith("injected loss on"):
            offered = int(re.search(r"of (\d+) packets", check.asked)[1])
            found[check.name.partition(" at ")[2]] = offered, int(check.measured.split()[0])
    return found


def test_datagrams_of_an_outage_are_lost_and_no_others(tmp_path):
    """One every 5 ms: 40 of the second and a fifth that nothing gets through, of 400 beside it."""
    text = experiment(
        "outage",
        path="rate: 20 Mbit/s, rtt: 20 ms",
        flows="{udp: 2.4224 Mbit/s, duration: 2 s}, {ping: 10 ms}",
        more="steps: [{at: 1.0025 s, loss: 100 %}, {at: 1.2025 s, loss: 0 %}]",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    (row,) = ran.set.flows.query("datagrams_sent > 0").to_dict("records")
    assert (row["datagrams_sent"], row["datagrams_lost"]) == (400, 40)
    each = ran.set.datagrams()
    assert (each["pdv_s"].isna() == each["t_s"].between(1.0025, 1.2025)).all()
    assert each["t_s"].diff().dropna().to_numpy() == pytest.approx(0.005, abs=1e-9)
    assert each["pdv_s"].max() < 1e-4, "the link is idle: nothing waits"
    assert injected(ran) == {"0 %": (360, 0), "100 %": (40, 40)}
    # Echo requests are spared.
    assert ran.set.pings()["rtt_s"].notna().all()


def test_every_kind_of_loss_lasts_from_its_step_to_the_next(tmp_path):
    """Each is drawn from what was offered while it held; a round trip that changes leaves it as it is."""
    text = experiment(
        "kinds",
        path="rate: 20 Mbit/s, rtt: 10 ms, loss: 5 %",
        flows="{udp: 18 Mbit/s, duration: 12 s}",
        more="steps: [{at: 3 s, loss: 20 %}, {at: 4.5 s, rtt: 30 ms},"
        " {at: 6 s, loss: {model: bursts, rate: 10 %, burst: 5}}, {at: 9 s, loss: 5 %}]",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    told = injected(ran)
    assert list(told) == ["5 %", "20 %", "10 % in bursts of 5"]
    per_s = 18e6 / BITS
    for (offered, dropped), seconds, share in zip(told.values(), (6, 3, 3), (0.05, 0.2, 0.1), strict=True):
        assert offered == pytest.approx(per_s * seconds, abs=20)
        assert dropped == pytest.approx(share * offered, rel=0.25)
    # All that came to the link came while one of the losses held, but for what passed while tc worked.
    (row,) = ran.set.flows.to_dict("records")
    assert 0 <= row["datagrams_sent"] - sum(offered for offered, _ in told.values()) <= 3
    assert 0 <= row["datagrams_lost"] - sum(dropped for _, dropped in told.values()) <= 3


def test_a_flow_of_tcp_goes_on_after_an_outage_and_a_table_may_say_when(tmp_path):
    """CUBIC fills the link again; BBR keeps to twice the BDP of the shortest round trip of ten seconds."""
    (tmp_path / "sky.csv").write_text(
        "at,rate,rtt,loss\n4 s,,60 ms,100 %\n4.1 s,,,0 %\n8 s,10 Mbit/s,40 ms,100 %\n8.1 s,,,0 %\n",
        encoding="utf-8",
    )
    text = experiment(
        "sky",
        path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 300 kB",
        flows="{cca: $cca, duration: 14 s}",
        more="steps: sky.csv\nwarm_up: 1 s\nvary: {cca: [cubic, bbr3]}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    for cell_id in ran.ids:
        told = injected(ran, cell_id)
        offered, dropped = told["100 %"]
        # What the bottleneck lets out in a tenth of a second, twice; the second time it is slower.
        assert dropped == offered > 0.5 * 0.1 * (20e6 + 10e6) / BITS
        assert told["0 %"][1] == 0
        groups = ran.set.groups.query("cell_id == @cell_id")
        later = groups[groups["begins_with"] == "step"]
        assert later["phase_start_s"].tolist() == [4, 8]
        used = (later["goodput_bps"] / later["ceiling_bps"]).tolist()
        assert max(used) <= 1.001
        whole = groups[groups["phase"] == 0].iloc[0]
        assert -1e-3 < whole["queue_delay_median_s"] < 8 * 300_000 / 10e6
        if cell_id.startswith("cca=cubic"):
            assert later["recovery_s"].max() < 1
            assert whole["recovery_s"] == pytest.approx(later["recovery_s"].mean())
            assert min(used) > 0.95
        else:
            assert used[0] < 2 * 20 / 60 + 0.05
            assert np.isnan(whole["recovery_s"])


def test_the_bucket_that_each_step_fills_counts_in_what_a_link_carries(tmp_path):
    """A rate that changes ten times a second carries almost a percent more, and no more than is said."""
    steps = ", ".join(f"{{at: {2 + n / 10:.1f} s, rate: {20 + n % 2} Mbit/s}}" for n in range(50))
    text = experiment(
        "fast",
        path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 2 BDP",
        flows="{cca: cubic, duration: 7 s}",
        more=f"steps: [{steps}]\nwarm_up: 2 s",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    (steady,) = ran.set.groups.query("phase_name == 'steady state'").to_dict("records")
    by_rate_alone = ceiling_bps(20.5e6)
    assert 1.002 * by_rate_alone < steady["goodput_bps"] <= steady["ceiling_bps"] < 1.015 * by_rate_alone
