"""The relay that stands in for a path: no frame is ever early."""

from collections import deque

from bpf import delay_relay

DELAY_S = 0.010


class Trickle:
    """A socket whose frames come one after the other while they are being read."""

    def __init__(self, clock, instants_s):
        self._clock, self._instants_s = clock, list(instants_s)

    def recvfrom(self, _):
        if not self._instants_s:
            raise BlockingIOError
        self._clock[0] = self._instants_s.pop(0)
        return b"frame", ("s", 0, 0)


def test_a_frame_that_comes_while_others_are_read_is_delayed_from_its_own_arrival(monkeypatch):
    clock = [1.0]
    monkeypatch.setattr(delay_relay.time, "monotonic", lambda: clock[0])
    arrivals_s = [1.0, 1.0002, 1.0006]
    waiting = deque()

    delay_relay.take(Trickle(clock, arrivals_s), None, waiting, DELAY_S)

    assert [due_s for due_s, _, _ in waiting] == [arrival_s + DELAY_S for arrival_s in arrivals_s]
