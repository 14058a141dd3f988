"""How much memory a guest gets, and how much of it a guest takes of the machine."""

from __future__ import annotations

from fabbbr.capturing import room_of
from fabbbr.job.flows import reports_bytes
from fabbbr.job.headroom import window_bytes
from fabbbr.job.records import Job
from fabbbr.model import Cell, Flow

_LEAST_BYTES = 2 << 30
_SHARE = 6
"""Guest memory per byte of socket window: a byte in flight stands in several buffers at once."""
_STEP_BYTES = 64 << 20
_BYTES_PER_CONNECTION_SLOT = 128 << 10
_FREE_AT_BOOT = 0.97

# What guests were seen to take, with some more: python -m benchmarks.guest_memory. Most of what a guest gets
# it never touches.
LEAST_TAKEN_BYTES = 128 << 20
_TAKEN_PER_STREAM_BYTES = 2 << 20
_TAKEN_PER_BATCHED_BYTES = 16 << 10
"""For a stream of a flow that shares its programs with others."""
_TAKEN_OF_WINDOW = 0.4
_TAKEN_OF_REPORTS = 8
"""iperf3 makes one text of them at the end."""
_TAKEN_OF_RINGS = 1.2


def memory_bytes(job: Job) -> int:
    """What the guest gets; reports count in 64 MiB steps, for the kernel sizes its limits by its memory."""
    more = max(job.ring_bytes - _free_bytes(job), 0)
    return _without_rings(job) + -(-more // _STEP_BYTES) * _STEP_BYTES


def connection_slots(job: Job) -> int | None:
    """Of the kernel's table of connections where rings add memory; None for as many as it makes of itself.

    ss prints in the order of that table: with a capture and without it must be the same.
    """
    least = _without_rings(job)
    return slots_by_memory(least) if memory_bytes(job) > least else None


def slots_by_memory(memory: int) -> int:
    """What the kernel makes: one for each 128 KiB that it does not need itself, to the next power of two."""
    return 1 << (round(memory * _FREE_AT_BOOT) // _BYTES_PER_CONNECTION_SLOT - 1).bit_length()


def taken_bytes(cell: Cell) -> float:
    """What the guest of a cell takes of the machine's memory, at most by what was seen."""
    return (
        LEAST_TAKEN_BYTES
        + sum(flow.streams * _taken_per_stream(flow) for flow in cell.flows)
        + _TAKEN_OF_WINDOW * window_bytes(cell)
        + _TAKEN_OF_REPORTS * sum(reports_bytes(flow) for flow in cell.flows)
        + _TAKEN_OF_RINGS * room_of(cell).memory_bytes
    )


def _taken_per_stream(flow: Flow) -> int:
    return _TAKEN_PER_BATCHED_BYTES if flow.at_random else _TAKEN_PER_STREAM_BYTES


def _without_rings(job: Job) -> int:
    return max(_LEAST_BYTES, _SHARE * job.window_bytes >> 20 << 20) + (job.reports_bytes >> 26 << 26)


def _free_bytes(job: Job) -> int:
    """Half of the least memory is for programs; of the other half, what windows leave is for rings."""
    return max(_LEAST_BYTES // 2 - _SHARE * job.window_bytes, 0)
