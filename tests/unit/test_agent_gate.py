"""The queue of a gate: bytes are conserved, order is kept, and an opportunity carries 1500 bytes at most."""

from hypothesis import given
from hypothesis import strategies as st

from fabbbr.agent.gate import Queue

TO_DO = bytes(10)
"""The header that says what a network card would still do; the queue passes it on and does not count it."""


def frame(number, size):
    """A frame with an IP packet of ``size`` bytes, which carries its number."""
    return TO_DO + bytes(14) + number.to_bytes(2, "big") + bytes(size - 2)


@given(st.lists(st.integers(46, 9000), max_size=60), st.integers(0, 200))
def test_what_leaves_is_what_came_in_order_and_never_before_its_bytes_had_an_opportunity(
    sizes, opportunities
):
    queue = Queue(10_000_000)
    frames = [frame(number, size) for number, size in enumerate(sizes)]
    for one in frames:
        queue.add(one)
    left = []
    for count in range(1, opportunities + 1):
        left += queue.opportunity()
        assert sum(len(one) - 24 for one in left) <= 1500 * count
    assert left == frames[: len(left)]
    # It does not idle either: what waits has used all that it was offered.
    carried = sum(sizes[: len(left)])
    assert len(left) == len(sizes) or carried + sizes[len(left)] > 1500 * opportunities
    assert queue.backlog_bytes == sum(sizes[len(left) :]) + 14 * len(queue)
    assert queue.offered == opportunities
    assert queue.used == min(-(-sum(sizes) // 1500), opportunities)


@given(st.lists(st.integers(46, 1500), max_size=60), st.integers(60, 20_000))
def test_a_frame_that_does_not_fit_is_dropped_and_the_next_smaller_one_is_not(sizes, limit):
    queue, backlog, dropped = Queue(limit), 0, 0
    for number, size in enumerate(sizes):
        queue.add(frame(number, size))
        if backlog + size + 14 > limit:
            dropped += 1
        else:
            backlog += size + 14
    assert (queue.backlog_bytes, queue.drops, len(queue)) == (backlog, dropped, len(sizes) - dropped)


def test_an_opportunity_that_nobody_used_is_lost():
    queue = Queue(10_000)
    assert list(queue.opportunity()) == []
    queue.add(frame(1, 1500))
    assert len(list(queue.opportunity())) == 1
    assert (queue.offered, queue.used, queue.sent_frames, queue.sent_bytes) == (2, 1, 1, 1514)


def test_small_packets_share_an_opportunity_and_a_large_one_takes_several():
    queue = Queue(100_000)
    for number, size in enumerate((500, 500, 500, 3001)):
        queue.add(frame(number, size))
    assert [len(list(queue.opportunity())) for _ in range(4)] == [3, 0, 0, 1]
