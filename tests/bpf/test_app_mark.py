"""Where tp->app_limited cannot be written, the own mark is on the packets that the kernel would stamp."""

import ctypes
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = [pytest.mark.bpf, pytest.mark.xdist_group("bpf")]


@pytest.fixture(scope="module")
def mark(compile_library):
    library = ctypes.CDLL(str(compile_library(Path(__file__).with_name("app_mark.c"))))
    library.in_force.restype = library.sent_under_mark.restype = ctypes.c_bool
    for function, counters in ((library.set_mark, 2), (library.in_force, 1), (library.sent_under_mark, 2)):
        function.argtypes = (ctypes.c_uint32,) * counters
    return library


class KernelsSender:
    """tcp_rate.c: a packet is stamped when it leaves; the stamp's cause ends when C.delivered has passed it.

    Counters here do not wrap and None is no mark; the kernel's wrap, and it takes 0 for none.
    """

    def __init__(self):
        self.delivered, self.limited_until = 0, None
        self.flying = deque()

    def send(self, packets):
        self.flying.extend([(self.delivered, self.limited_until is not None)] * packets)

    def take_ack(self, packets):
        """C.delivered at the departure of the last packet that was delivered, and its stamp."""
        for _ in range(packets):
            sample = self.flying.popleft()
        self.delivered += packets
        if self.limited_until is not None and self.delivered > self.limited_until:
            self.limited_until = None
        return sample

    def mark(self):
        self.limited_until = self.delivered + len(self.flying)


STEP = st.tuples(st.integers(0, 8), st.integers(1, 8), st.booleans())
"""Packets sent, packets delivered by the ACK that follows, and whether the algorithm then marks."""


@given(
    steps=st.lists(STEP, min_size=1, max_size=80),
    origin=st.integers(0, 2**32 - 1) | st.integers(2**32 - 200, 2**32 - 1),
)
def test_the_own_mark_tells_the_packets_that_the_kernel_would_have_stamped(mark, steps, origin):
    """ProbeRTT marks with every ACK; ProbeRTTs are far apart: none begins with stamped packets in flight."""
    kernel = KernelsSender()
    mark.forget()
    for sent, delivered, marks in steps:
        kernel.send(sent)
        if not kernel.flying:
            continue
        goes_on = kernel.limited_until is not None
        prior_delivered, stamped = kernel.take_ack(min(delivered, len(kernel.flying)))
        now = kernel.delivered + origin
        assert mark.sent_under_mark(prior_delivered + origin, now) == stamped
        if marks and (goes_on or not any(stamp for _, stamp in kernel.flying)):
            kernel.mark()
            mark.set_mark(now, len(kernel.flying))
        assert mark.in_force(now) == (kernel.limited_until is not None)


def test_a_mark_is_forgotten_before_the_counters_come_round_to_it(mark):
    mark.forget()
    mark.set_mark(100, 10)
    assert mark.sent_under_mark(105, 106)
    for delivered in range(2**28, 2**32 + 2**28, 2**28):
        assert not mark.sent_under_mark(delivered + 103, delivered + 105)
    assert not mark.sent_under_mark(105, 106)
