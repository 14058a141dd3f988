"""Gate check A: on whole connections the core and the drafts' pseudocode decide alike, ACK by ACK."""

import pytest
from bbr.core import Ack
from bbr.path import INITIAL_CWND, Path, open_flow
from bbr.reference import Reference
from bbr.script import MS, SECOND

RATE = 1_500_000
# The name in the reference, where the core's differs.
SAME = {
    "state": "state", "pacing_gain": "pacing_gain", "cwnd_gain": "cwnd_gain", "cwnd": "cwnd",
    "pacing_rate": "pacing_rate", "bw": "bw", "bw_lo": "bw_shortterm", "inflight_lo": "inflight_shortterm",
    "inflight_hi": "inflight_longterm", "round_count": "round_count", "min_rtt_us": "min_rtt",
    "ack_phase": "ack_phase", "full_bw": "full_bw", "full_bw_now": "full_bw_now",
    "full_bw_reached": "full_bw_reached", "bw_probe_samples": "bw_probe_samples",
    "loss_in_round": "loss_in_round", "prior_cwnd": "prior_cwnd",
    "rounds_since_bw_probe": "rounds_since_bw_probe", "probe_up_cnt": "probe_up_cnt",
    "bw_latest": "bw_latest", "inflight_latest": "inflight_latest",
    "prev_probe_too_high": "prev_probe_too_high",
}  # fmt: skip
PATHS = {
    "deep buffer": Path(rate=RATE, rtt_us=40 * MS, buffer=160),
    "shallow buffer": Path(rate=RATE, rtt_us=40 * MS, buffer=8),
    "random loss": Path(rate=RATE, rtt_us=40 * MS, buffer=80, loss=0.005),
    "heavy loss": Path(rate=RATE, rtt_us=40 * MS, buffer=80, loss=0.04),
    "short": Path(rate=RATE, rtt_us=5 * MS, buffer=30, loss=0.002),
    "long": Path(rate=RATE, rtt_us=150 * MS, buffer=100, loss=0.001),
    "lumps": Path(rate=RATE, rtt_us=40 * MS, buffer=80, loss=0.001, aggregate_us=15 * MS),
    "less bandwidth": Path(rate=RATE, rtt_us=30 * MS, buffer=60, changes=((4 * SECOND, RATE // 5),)),
    "more bandwidth": Path(
        rate=RATE // 5, rtt_us=30 * MS, buffer=30, loss=0.001, changes=((4 * SECOND, RATE),)
    ),
    "slow": Path(rate=30_000, rtt_us=60 * MS, buffer=12),
}


class Beside:
    """Feeds the reference what the core gets, with per-packet state, and compares after each ACK."""

    def __init__(self, core, on, profile, seed):
        self.flow = open_flow(core, on, profile, seed=seed, look=self.look, after=self.after)
        self.reference = Reference(profile, Ack(cwnd=INITIAL_CWND, mss=on.mss, rtt_us=on.rtt_us))
        self.acks = 0
        self.tell_core = self.flow.connection.on_recovery
        self.flow.connection.on_recovery = self.on_recovery

    def on_recovery(self, cwnd):
        self.tell_core(cwnd)
        self.reference.on_recovery(cwnd)

    def look(self, seen):
        newest = seen.packet.epoch == len(self.flow.epoch_in_flight) - 1
        tx_in_flight = seen.ack.prior_in_flight if newest else self.flow.epoch_in_flight[seen.packet.epoch]
        self.reference.on_ack(seen.ack, tx_in_flight, seen.packet.lost)

    def after(self, flow, seen):
        b, r = flow.connection, self.reference
        if r.picked_wait:
            r.picked_wait = False
            r.bw_probe_wait, r.rounds_since_bw_probe = b.bw_probe_wait_us, b.rounds_since_bw_probe
        core = {name: getattr(b, name) for name in SAME}
        text = {name: getattr(r, its) for name, its in SAME.items()}
        assert core == text, f"ACK {self.acks} at {seen.ack.now_us} us: {seen}"
        self.acks += 1


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("seed", [0x9E3779B9, 0x12345678])
def test_core_and_pseudocode_agree_on_every_ack(core, profile, name, seed):
    beside = Beside(core, PATHS[name], profile, seed)
    beside.flow.run(8 * SECOND)
    assert beside.acks > 100
    assert beside.flow.timeouts == 0, "a path for this test loses no whole window"
