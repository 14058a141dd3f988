"""A connection whose every ACK is written down: to put the core into a state and see which ACK ends it.

The path carries 1 MB/s with an RTT of 100 ms and packets of 1000 bytes: its BDP is 100 packets.
"""

from dataclasses import replace
from typing import Any

from bbr.core import Ack, Core, Profile, State

MSS = 1000
RATE = 10**6
RTT_US = 100_000
BDP = 100
MS = 1000
SECOND = 10**6


class Script:
    """Keeps the transport's counters; :meth:`ack` is the next ACK."""

    def __init__(
        self, core: Core, profile: Profile, *, seed: int = 1, cwnd: int = 10, rtt_us: int = RTT_US
    ) -> None:
        self.now_us = 0
        self.delivered = 0
        self.lost = 0
        self.in_flight = 2 * BDP
        self.cwnd = cwnd
        self.in_recovery = False
        self.connection = core.open(self._known(rtt_us=rtt_us, in_flight=0), profile, seed=seed)

    def _known(self, **more: Any) -> Ack:
        known = Ack(
            now_us=self.now_us,
            delivered=self.delivered,
            lost=self.lost,
            cwnd=self.cwnd,
            mss=MSS,
            in_flight=self.in_flight,
            prior_in_flight=self.in_flight,
            in_recovery=self.in_recovery,
        )
        return replace(known, **more)

    def _within_both_rounds(self) -> int:
        b = self.connection
        return int(min(b.next_round_delivered, b.loss_round_delivered)) - 1

    def ack(
        self,
        *,
        after_us: int = MS,
        acked: int = 1,
        lost: int = 0,
        rate: int | None = RATE,
        volume: int = BDP,
        prior: int | None = None,
        **more: Any,
    ) -> State:
        """One ACK of ``acked`` packets, ``lost`` newly marked; sample: ``volume`` packets, ``rate`` bytes/s.

        ``prior``: C.delivered when the sample's packet left; None: before this packet-timed round began.
        """
        before = self.delivered
        self.now_us += after_us
        self.delivered += acked
        self.lost += lost
        self.in_flight = more.pop("in_flight", self.in_flight)
        more.setdefault("prior_in_flight", self.in_flight + acked + lost)
        assert prior is None or prior <= before
        sample: dict[str, Any] = {"prior_delivered": self.delivered}
        if rate:
            interval_us, rest = divmod(volume * MSS * SECOND, rate)
            assert not rest, "a sample whose rate is exact"
            prior = self._within_both_rounds() if prior is None else prior
            sample = {
                "prior_delivered": prior % 2**32,
                "sample_delivered": volume,
                "interval_us": interval_us,
                "rtt_us": RTT_US,
            }
        self.connection.on_ack(self._known(newly_acked=acked, **(sample | more)))
        self.cwnd = self.connection.record.cwnd
        return self.connection.state

    def round(self, *, after_us: int = RTT_US, **more: Any) -> State:
        """An ACK that ends the packet-timed round: its sample left after all delivered had arrived."""
        return self.ack(after_us=after_us, prior=self.delivered, **more)

    def recover(self) -> None:
        """The transport enters fast recovery; its next ACK says so."""
        self.connection.on_recovery(self.cwnd)
        self.in_recovery = True

    def time_out(self) -> State:
        """All that is in flight is marked lost by the retransmission timer."""
        self.lost += self.in_flight
        self.in_flight = 0
        self.connection.on_recovery(self.cwnd)
        self.in_recovery = True
        self.cwnd = 1
        self.connection.on_rto(self._known())
        return self.connection.state

    def restart(self) -> None:
        """The first packet after a silence is about to leave."""
        self.in_flight = 0
        self.connection.on_restart(self._known())
        self.cwnd = self.connection.record.cwnd

    def undo(self) -> State:
        """The transport finds that nothing had been lost."""
        self.connection.on_spurious_loss(self._known())
        self.cwnd = self.connection.record.cwnd
        return self.connection.state

    def wait_for_probe(self) -> None:
        """Let the wall clock of probing run out: the next ACK may start the probe."""
        self.now_us = self.connection.cycle_stamp_us + self.connection.bw_probe_wait_us


def _startup(script: Script) -> None:
    script.ack()


def _drain(script: Script) -> None:
    for _ in range(4):
        script.round()


def _cruise(script: Script) -> None:
    _drain(script)
    script.ack(in_flight=BDP)


def _refill(script: Script) -> None:
    _cruise(script)
    script.wait_for_probe()
    script.ack()


def _up(script: Script) -> None:
    _refill(script)
    script.round()


def _down(script: Script) -> None:
    _up(script)
    state = script.round(after_us=RTT_US + 1, in_flight=2 * BDP)
    while state is State.PROBE_BW_UP:
        state = script.round(after_us=MS)


def _probe_rtt(script: Script) -> None:
    _cruise(script)
    script.now_us = script.connection.probe_rtt_min_stamp_us + 5 * SECOND
    script.ack()


WAYS = {
    State.STARTUP: _startup,
    State.DRAIN: _drain,
    State.PROBE_BW_DOWN: _down,
    State.PROBE_BW_CRUISE: _cruise,
    State.PROBE_BW_REFILL: _refill,
    State.PROBE_BW_UP: _up,
    State.PROBE_RTT: _probe_rtt,
}


def brought_to(state: State, core: Core, profile: Profile, *, seed: int = 1) -> Script:
    """A connection that has just entered ``state`` by the ordinary way, without loss."""
    script = Script(core, profile, seed=seed)
    WAYS[state](script)
    assert script.connection.state is state
    return script
