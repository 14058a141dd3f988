"""The pseudocode of the drafts once more, in Python and with their names, as an oracle for the core.

Read from draft-ietf-ccwg-bbr (July 2026); where ``text`` is 2021, from
draft-cardwell-iccrg-bbr-congestion-control-01. It gets what the drafts keep with each packet, not the core's
history. Roundings are the core's: rates to whole bytes per second, volumes to whole packets, the BDP upwards;
gains are n/256. Losses and undoing come as the core gets them: once per ACK. ProbeBW's random waits are the
core's: the test hands them over.
"""

from bbr.core import INFINITE, UNKNOWN, Ack, Acks, State
from bbr.reference_model import PROBE_BW, SECOND_US, ReferenceModel


class Reference(ReferenceModel):
    """One connection: the transport's events, and the state machine that answers them."""

    def on_recovery(self, cwnd: int) -> None:
        """OnEnterFastRecovery and OnEnterRTO, before the window is cut."""
        self.cwnd = cwnd
        self.save_cwnd()

    def on_ack(self, ack: Ack, tx_in_flight: int, p_lost: int) -> None:
        """UpdateOnACK, after HandleLostPacket for what this ACK has marked."""
        self.C, self.cwnd = ack, ack.cwnd
        newly_lost = ack.lost - self.last_lost
        self.last_lost = ack.lost
        self.rate = ack.sample_delivered * self.mss * SECOND_US // ack.interval_us
        self.tx_in_flight, self.lost = tx_in_flight, ack.lost - p_lost
        self.track_recovery()
        if newly_lost:
            self.handle_lost_packets()
        self.update_model_and_state(newly_lost)
        self.set_pacing_rate(self.pacing_gain)
        self.set_cwnd(newly_lost)

    def track_recovery(self) -> None:
        if self.C.in_recovery and not self.in_recovery:
            self.save_cwnd()
            self.recovery_start = self.C.delivered
            self.packet_conservation = True
            if self.text.year == 2021:
                self.cwnd = self.C.in_flight + max(self.C.newly_acked, 1)
        elif self.in_recovery and not self.C.in_recovery:
            self.packet_conservation = False
            self.cwnd = max(self.cwnd, self.prior_cwnd)
        self.in_recovery = self.C.in_recovery

    def update_model_and_state(self, newly_lost: int) -> None:
        self.update_latest_delivery_signals()
        self.update_max_bw()
        if self.loss_round_start:
            self.adapt_lower_bounds_from_congestion()
        self.update_ack_aggregation()
        self.check_full_bw_reached()
        self.check_startup_high_loss(newly_lost)
        if self.loss_round_start:
            self.loss_in_round, self.loss_events = False, 0
        if self.state is State.STARTUP and self.full_bw_reached:
            self.enter_drain()
        self.check_drain_done()
        self.update_probe_bw_cycle_phase()
        self.update_min_rtt()
        self.check_probe_rtt()
        if self.loss_round_start:
            self.bw_latest, self.inflight_latest = self.rate, self.C.sample_delivered
        self.bw = min(self.max_bw, self.bw_shortterm)

    def enter_startup(self) -> None:
        self.state = State.STARTUP
        self.pacing_gain, self.cwnd_gain = self.text.startup

    def check_full_bw_reached(self) -> None:
        if self.full_bw_now or not self.round_start or self.C.app_limited:
            return
        bw = self.rate if self.text.year == 2026 else self.max_bw
        if bw * 4 >= self.full_bw * 5:
            self.reset_full_bw(bw)
            return
        self.full_bw_count += 1
        self.full_bw_now = self.full_bw_count >= 3
        if self.full_bw_now:
            self.full_bw_reached = True

    def check_startup_high_loss(self, newly_lost: int) -> None:
        if self.full_bw_reached or self.state is not State.STARTUP or not self.in_recovery:
            return
        if self.C.sacks:
            whole_round = self.loss_round_start and self.C.prior_delivered >= self.recovery_start
            if (
                not whole_round
                or not self.is_inflight_too_high()
                or self.loss_events < self.text.full_loss_count
            ):
                return
        elif not newly_lost:
            return
        self.full_bw_reached = True
        bdp = self.bdp_multiple(self.max_bw, 256)
        if self.text.bound_at_loss_exit != "none":
            delivered = self.inflight_latest if self.text.bound_at_loss_exit == "delivered" else 0
            self.inflight_longterm = max(bdp, delivered)

    def enter_drain(self) -> None:
        self.state = State.DRAIN
        self.pacing_gain, self.cwnd_gain = self.text.drain, self.text.startup[1]
        self.drain_start_round = self.round_count

    def check_drain_done(self) -> None:
        late = self.text.year == 2026 and self.round_count > self.drain_start_round + 3
        if self.state is State.DRAIN and (self.C.in_flight <= self.inflight(self.bw, 256) or late):
            self.start_down()

    def start_down(self) -> None:
        self.loss_in_round, self.bw_latest, self.inflight_latest = False, 0, 0
        self.probe_up_cnt = INFINITE
        self.picked_wait = True
        self.rounds_since_bw_probe, self.bw_probe_wait = 0, 2 * SECOND_US
        self.cycle_stamp = self.C.now_us
        self.ack_phase = Acks.PROBE_STOPPING
        self.start_round()
        self.state, self.pacing_gain, self.cwnd_gain = State.PROBE_BW_DOWN, self.text.down, 512

    def start_cruise(self) -> None:
        self.state, self.pacing_gain, self.cwnd_gain = State.PROBE_BW_CRUISE, 256, 512

    def start_refill(self) -> None:
        self.reset_short_term_model()
        self.bw_probe_up_rounds = self.bw_probe_up_acked = 0
        self.prev_probe_precautionary = False
        self.ack_phase = Acks.REFILLING
        self.start_round()
        self.state, self.pacing_gain, self.cwnd_gain = State.PROBE_BW_REFILL, 256, 512

    def start_up(self) -> None:
        self.ack_phase = Acks.PROBE_STARTING
        self.start_round()
        self.reset_full_bw(self.rate)
        self.cycle_stamp = self.C.now_us
        self.state, self.pacing_gain, self.cwnd_gain = State.PROBE_BW_UP, 320, self.text.up_cwnd
        self.raise_slope()

    def update_probe_bw_cycle_phase(self) -> None:
        if not self.full_bw_reached or self.adapt_long_term_model():
            return
        if self.state in {State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE} and self.is_time_to_probe_bw():
            self.start_refill()
        elif self.state is State.PROBE_BW_DOWN and self.is_time_to_cruise():
            self.start_cruise()
        elif self.state is State.PROBE_BW_REFILL and self.round_start:
            self.bw_probe_samples = True
            self.start_up()
        elif self.state is State.PROBE_BW_UP and self.is_time_to_go_down():
            self.prev_probe_too_high = False
            self.start_down()

    def has_elapsed_in_phase(self, interval: int) -> bool:
        return bool(self.C.now_us > self.cycle_stamp + interval)

    def is_time_to_probe_bw(self) -> bool:
        reno_rounds = min(self.target_inflight(), 63)
        return self.has_elapsed_in_phase(self.bw_probe_wait) or self.rounds_since_bw_probe >= reno_rounds

    def is_time_to_cruise(self) -> bool:
        if self.C.in_flight > self.inflight_with_headroom():
            return False
        if self.C.in_flight <= self.inflight(self.max_bw, 256):
            return True
        return self.text.year == 2021 and self.has_elapsed_in_phase(self.min_rtt)

    def is_time_to_go_down(self) -> bool:
        if self.text.year == 2021:
            return self.has_elapsed_in_phase(self.min_rtt) and self.C.in_flight > self.inflight(
                self.max_bw, 320
            )
        if self.prev_probe_too_high and self.C.in_flight >= self.inflight_longterm:
            self.prev_probe_precautionary = True
            return True
        if self.C.cwnd_limited and self.cwnd >= self.inflight_longterm:
            self.reset_full_bw(self.rate)
            return False
        return self.full_bw_now

    def raise_slope(self) -> None:
        growth = 1 << self.bw_probe_up_rounds
        self.bw_probe_up_rounds = min(self.bw_probe_up_rounds + 1, 30)
        self.probe_up_cnt = max(self.cwnd // growth, 1)

    def probe_inflight_upward(self) -> None:
        if not self.C.cwnd_limited or self.cwnd < self.inflight_longterm:
            return
        self.bw_probe_up_acked += self.C.newly_acked
        if self.bw_probe_up_acked >= self.probe_up_cnt:
            delta = self.bw_probe_up_acked // self.probe_up_cnt
            self.bw_probe_up_acked -= delta * self.probe_up_cnt
            self.inflight_longterm += delta
        if self.round_start:
            self.raise_slope()

    def adapt_long_term_model(self) -> bool:
        if self.ack_phase is Acks.PROBE_STARTING and self.round_start:
            self.ack_phase = Acks.PROBE_FEEDBACK
        if self.ack_phase is Acks.PROBE_STOPPING and self.round_start:
            self.bw_probe_samples = False
            self.ack_phase = Acks.INIT
            if self.state in PROBE_BW and not self.C.app_limited:
                self.max_bw_filter = [self.max_bw_filter[1] or self.max_bw, 0]
            confirmed = self.prev_probe_precautionary and not self.prev_probe_too_high
            if self.text.year == 2026 and self.state in PROBE_BW and confirmed:
                self.start_refill()
                return True
        if self.is_inflight_too_high():
            return (
                self.text.year == 2021
                and self.bw_probe_samples
                and self.handle_inflight_too_high(self.tx_in_flight)
            )
        if self.inflight_longterm != INFINITE:
            self.inflight_longterm = max(self.inflight_longterm, self.tx_in_flight)
            if self.state is State.PROBE_BW_UP:
                self.probe_inflight_upward()
        return False

    def update_min_rtt(self) -> None:
        now, rtt = self.C.now_us, self.C.rtt_us
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + 5 * SECOND_US
        if rtt != UNKNOWN and (rtt < self.probe_rtt_min_delay or self.probe_rtt_expired):
            self.probe_rtt_min_delay, self.probe_rtt_min_stamp = rtt, now
        if self.probe_rtt_min_delay < self.min_rtt or now > self.min_rtt_stamp + 10 * SECOND_US:
            self.min_rtt, self.min_rtt_stamp = self.probe_rtt_min_delay, self.probe_rtt_min_stamp

    def check_probe_rtt(self) -> None:
        if self.state is not State.PROBE_RTT and self.probe_rtt_expired and not self.idle_restart:
            self.save_cwnd()
            self.state, self.pacing_gain, self.cwnd_gain = State.PROBE_RTT, 256, 128
            self.probe_rtt_done_stamp = 0
            self.ack_phase = Acks.PROBE_STOPPING
            self.start_round()
        if self.state is State.PROBE_RTT:
            self.handle_probe_rtt()
        self.idle_restart = False

    def handle_probe_rtt(self) -> None:
        if not self.probe_rtt_done_stamp and self.C.in_flight <= self.probe_rtt_cwnd():
            self.probe_rtt_done_stamp = self.C.now_us + SECOND_US // 5
            self.probe_rtt_round_done = False
            self.start_round()
        elif self.probe_rtt_done_stamp:
            self.probe_rtt_round_done = self.probe_rtt_round_done or self.round_start
            if self.probe_rtt_round_done and self.C.now_us > self.probe_rtt_done_stamp:
                self.exit_probe_rtt()

    def exit_probe_rtt(self) -> None:
        self.probe_rtt_min_stamp = self.C.now_us
        self.cwnd = max(self.cwnd, self.prior_cwnd)
        self.reset_short_term_model()
        if self.full_bw_reached:
            self.start_down()
            self.start_cruise()
        else:
            self.enter_startup()

    def handle_lost_packets(self) -> None:
        self.loss_events += 1
        if not self.loss_in_round and self.text.notes_loss:
            self.loss_round_delivered = self.C.delivered
        self.loss_in_round = True
        if self.bw_probe_samples and self.is_inflight_too_high():
            self.handle_inflight_too_high(self.tx_in_flight - 1)

    def handle_inflight_too_high(self, volume: int) -> bool:
        self.prev_probe_too_high, self.bw_probe_samples = True, False
        if not self.C.app_limited:
            self.inflight_longterm = max(volume, self.target_inflight() * 7 // 10)
        if self.state is State.PROBE_BW_UP:
            self.start_down()
            return True
        return False
