"""The drafts' path model and control parameters, with which :mod:`bbr.reference` decides."""

import math
from dataclasses import dataclass
from typing import Any

from bbr.core import INFINITE, INFINITE_RATE, Ack, Acks, Profile, State

SECOND_US = 10**6
MIN_PIPE_CWND = 4
PROBE_BW = (State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE, State.PROBE_BW_REFILL, State.PROBE_BW_UP)


@dataclass(frozen=True, kw_only=True)
class Text:
    """What the profiles have of their own."""

    year: int
    startup: tuple[int, int]
    drain: int
    down: int
    up_cwnd: int
    full_loss_count: int
    notes_loss: bool
    bound_at_loss_exit: str = "none"


TEXTS = {
    Profile.V2ALPHA: Text(
        year=2021, startup=(739, 739), drain=89, down=192, up_cwnd=512, full_loss_count=8, notes_loss=True,
        bound_at_loss_exit="bdp",
    ),
    Profile.DRAFT01: Text(
        year=2021, startup=(710, 512), drain=128, down=192, up_cwnd=512, full_loss_count=3, notes_loss=False
    ),
    Profile.V3: Text(
        year=2026, startup=(710, 512), drain=128, down=230, up_cwnd=576, full_loss_count=6, notes_loss=True,
        bound_at_loss_exit="delivered",
    ),
}  # fmt: skip


class ReferenceModel:
    """``C`` is the transport's state as the ACK gives it; ``rate``, ``lost``, ``tx_in_flight`` are RS's."""

    def __init__(self, profile: Profile, opening: Ack) -> None:
        self.text = TEXTS[profile]
        self.C: Any = opening
        self.mss = opening.mss
        self.initial_cwnd = self.cwnd = opening.cwnd
        self.min_rtt = self.probe_rtt_min_delay = opening.rtt_us
        self.min_rtt_stamp = self.probe_rtt_min_stamp = self.extra_acked_interval_start = 0
        self.cycle_stamp = self.bw_probe_wait = self.rounds_since_bw_probe = 0
        self.picked_wait = False
        self.probe_rtt_done_stamp = 0
        self.probe_rtt_round_done = self.idle_restart = self.probe_rtt_expired = False
        self.extra_acked_delivered = self.extra_acked = 0
        self.extra_acked_rounds: dict[int, int] = {}
        self.max_bw_filter = [0, 0]
        self.bw = self.bw_latest = self.inflight_latest = 0
        self.full_bw_reached = False
        self.inflight_longterm = self.probe_up_cnt = INFINITE
        self.bw_probe_up_acked = self.bw_probe_up_rounds = 0
        self.bw_probe_samples = self.prev_probe_too_high = self.prev_probe_precautionary = False
        self.ack_phase = Acks.INIT
        self.loss_in_round = self.loss_round_start = self.round_start = False
        self.loss_events = self.loss_round_delivered = self.next_round_delivered = self.round_count = 0
        self.in_recovery = self.packet_conservation = False
        self.recovery_start = self.prior_cwnd = self.drain_start_round = 0
        self.last_lost = self.rate = self.lost = self.tx_in_flight = 0
        self.reset_short_term_model()
        self.reset_full_bw(0)
        self.state = State.STARTUP
        self.pacing_gain, self.cwnd_gain = self.text.startup
        self.pacing_rate = (
            self.initial_cwnd * self.mss * SECOND_US // opening.rtt_us * self.pacing_gain // 256
        )

    @property
    def max_bw(self) -> int:
        return max(self.max_bw_filter)

    def start_round(self) -> None:
        self.next_round_delivered = self.C.delivered

    def update_latest_delivery_signals(self) -> None:
        self.loss_round_start = False
        self.bw_latest = max(self.bw_latest, self.rate)
        self.inflight_latest = max(self.inflight_latest, self.C.sample_delivered)
        if self.C.prior_delivered >= self.loss_round_delivered:
            self.loss_round_delivered = self.C.delivered
            self.loss_round_start = True

    def update_max_bw(self) -> None:
        self.round_start = self.C.prior_delivered >= self.next_round_delivered
        if self.round_start:
            self.start_round()
            self.round_count += 1
            self.rounds_since_bw_probe += 1
        if self.C.prior_delivered >= self.recovery_start:
            self.packet_conservation = False
        if self.rate >= self.max_bw or not self.C.app_limited:
            self.max_bw_filter[1] = max(self.max_bw_filter[1], self.rate)

    def update_ack_aggregation(self) -> None:
        expected = self.bw * (self.C.now_us - self.extra_acked_interval_start) // SECOND_US // self.mss
        if self.extra_acked_delivered <= expected:
            self.extra_acked_delivered, self.extra_acked_interval_start, expected = 0, self.C.now_us, 0
        self.extra_acked_delivered += self.C.newly_acked
        extra = min(max(self.extra_acked_delivered - expected, 0), self.cwnd)
        rounds = self.extra_acked_rounds
        rounds[self.round_count] = max(rounds.get(self.round_count, 0), extra)
        window = 1 if self.text.year == 2026 and not self.full_bw_reached else 10
        self.extra_acked = max(most for at, most in rounds.items() if self.round_count - at <= window)

    def reset_short_term_model(self) -> None:
        self.bw_shortterm, self.inflight_shortterm = INFINITE_RATE, INFINITE

    def adapt_lower_bounds_from_congestion(self) -> None:
        probing = self.state in {State.STARTUP, State.PROBE_BW_REFILL, State.PROBE_BW_UP}
        if probing or not self.loss_in_round:
            return
        if self.bw_shortterm == INFINITE_RATE:
            self.bw_shortterm = self.max_bw
        if self.inflight_shortterm == INFINITE:
            self.inflight_shortterm = self.cwnd
        self.bw_shortterm = max(self.bw_latest, self.bw_shortterm * 7 // 10)
        self.inflight_shortterm = max(self.inflight_latest, self.inflight_shortterm * 7 // 10)

    def is_inflight_too_high(self) -> bool:
        return self.lost * 100 > self.tx_in_flight * 2 or (self.lost > 0 and not self.C.sacks)

    def reset_full_bw(self, full_bw: int) -> None:
        self.full_bw, self.full_bw_count, self.full_bw_now = full_bw, 0, False

    def bdp_multiple(self, bw: int, gain: int) -> int:
        return -(-(bw * self.min_rtt // SECOND_US * gain // 256) // self.mss)

    def quantization_budget(self, volume: int) -> int:
        least = 1 if self.text.year == 2021 and self.pacing_rate < 150_000 else 2
        quantum = max(min(self.pacing_rate // 1000, 65536) // self.mss, least)
        volume = max(volume, 3 * quantum, MIN_PIPE_CWND)
        return volume + 2 if self.state is State.PROBE_BW_UP else volume

    def inflight(self, bw: int, gain: int) -> int:
        return self.quantization_budget(self.bdp_multiple(bw, gain))

    def target_inflight(self) -> int:
        return min(self.bdp_multiple(self.bw, 256), self.cwnd)

    def probe_rtt_cwnd(self) -> int:
        return max(self.bdp_multiple(self.bw, 128), MIN_PIPE_CWND)

    def inflight_with_headroom(self) -> int:
        if self.inflight_longterm == INFINITE:
            return INFINITE
        headroom = max(1, math.ceil(self.inflight_longterm * 15 / 100))
        return max(self.inflight_longterm - headroom, MIN_PIPE_CWND)

    def save_cwnd(self) -> None:
        held = self.in_recovery or self.state is State.PROBE_RTT
        self.prior_cwnd = max(self.prior_cwnd, self.cwnd) if held else self.cwnd

    def set_pacing_rate(self, gain: int) -> None:
        rate = max(self.bw * gain // 256 * 99 // 100, self.mss)
        if self.full_bw_reached or rate > self.pacing_rate:
            self.pacing_rate = rate

    def set_cwnd(self, newly_lost: int) -> None:
        conserving = self.text.year == 2021 and self.modulate_cwnd_for_recovery(newly_lost)
        if not conserving:
            max_inflight = self.quantization_budget(
                self.bdp_multiple(self.bw, self.cwnd_gain) + self.extra_acked
            )
            if self.full_bw_reached:
                self.cwnd = min(self.cwnd + self.C.newly_acked, max_inflight)
            elif self.cwnd < max_inflight or self.C.delivered < self.initial_cwnd:
                self.cwnd += self.C.newly_acked
            self.cwnd = max(self.cwnd, MIN_PIPE_CWND)
        if self.state is State.PROBE_RTT:
            self.cwnd = min(self.cwnd, self.probe_rtt_cwnd())
        self.bound_cwnd_for_model()

    def modulate_cwnd_for_recovery(self, newly_lost: int) -> bool:
        if self.in_recovery and newly_lost:
            self.cwnd = max(self.cwnd - newly_lost, 1)
        if self.packet_conservation:
            self.cwnd = max(self.cwnd, self.C.in_flight + self.C.newly_acked)
        return self.packet_conservation

    def bound_cwnd_for_model(self) -> None:
        cap = INFINITE
        if self.state in {State.PROBE_RTT, State.PROBE_BW_CRUISE}:
            cap = self.inflight_with_headroom()
        elif self.state in PROBE_BW:
            cap = self.inflight_longterm
        self.cwnd = min(self.cwnd, max(min(cap, self.inflight_shortterm), MIN_PIPE_CWND))
