"""Connections that begin with a window of their own: what leaves before anything is acknowledged."""

import pytest
from guest.cells import experiment, run

pytestmark = pytest.mark.guest

RTT_S, MSS = 0.1, 1448


@pytest.mark.parametrize(("cca", "paced_s"), [("cubic", 0.0), ("bbr3", RTT_S / 2)])
def test_what_fits_into_it_arrives_a_round_trip_sooner(tmp_path, cca, paced_s):
    """21 segments: after ten of them a sender waits for the first acknowledgement. BBR paces the first, too,
    at more than two windows a round trip."""
    begun = run(
        tmp_path,
        experiment(
            "begun",
            path="rate: 100 Mbit/s, rtt: 100 ms",
            flows=f"{{cca: {cca}, size: {21 * MSS} B, initial_window: $window}}",
            more="vary: {window: [1, 10, 21, 45]}",
        ),
    )
    assert begun.wrong() == {}
    took_s = begun.set.flows.set_index("cell_id")["completion_s"]
    took_s.index = [cell_id.split(",")[0].removeprefix("window=") for cell_id in took_s.index]
    # The handshake takes one round trip, and the last byte half of one.
    frames_s = 21 * 1514 * 8 / 100e6
    assert 1.5 * RTT_S < took_s["45"] <= took_s["21"] < 1.5 * RTT_S + frames_s + paced_s
    assert 2.5 * RTT_S < took_s["10"] < 2.5 * RTT_S + frames_s + paced_s
    assert took_s["1"] > 4.4 * RTT_S  # 1, 2, 4, 8 and the rest


def test_each_way_has_its_own_and_a_video_too(tmp_path):
    begun = run(
        tmp_path,
        experiment(
            "ways",
            slice_="dumbbell",
            path="rate: 20 Mbit/s, rtt: 40 ms",
            flows="{cca: reno, duration: 2 s, initial_window: 4}, "
            "{video: {bitrate: 1 Mbit/s}, cca: cubic, duration: 2 s, from: h2, initial_window: 30}, "
            "{cca: reno, size: 50 kB, from: r1, to: h1, initial_window: 2}",
        ),
    )
    assert begun.wrong() == {}
    checks = {check.name: check.measured for check in begun.cell().manifest.certificate.checks}
    told = {name: said for name, said in checks.items() if name.startswith("initial window")}
    assert told == {
        "initial window h1–r1": "4 segments",
        "initial window h2–r2": "30 segments",
        "initial window r1–h1": "2 segments",
    }
