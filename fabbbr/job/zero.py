"""When the flows of a job begin where the clock is virtual: an instant known beforehand. Pure.

Nothing that happens before it may matter afterwards. So it is late enough for any set-up, however long that
takes; the agent waits for it, lets the kernel draw its randomness anew, and seeds netem again, which has a
generator of its own. Waiting costs nothing on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabbbr.job.headroom import held_ns
from fabbbr.job.records import Burst
from fabbbr.model import Cell
from fabbbr.testbed import Testbed
from fabbbr.units import NANOSECONDS_PER_SECOND

_ROUND_S = 10
_ALLOWANCE_S = 20
"""Carriers that come up a second late, servers that are waited for, programs that start."""
_PING_S = 1.0
"""Of three, 0.2 s apart, besides their way."""


def flows_at_ns(
    cell: Cell, testbed: Testbed, bursts: Sequence[Burst], *, pairs: int, settle_ns: int
) -> int | None:
    """Nanoseconds on the machine's monotonic clock; None where it is real: flows begin once all is ready.

    Also where there are several machines: their clocks share no zero. ``pairs`` of hosts ping before it.
    """
    if testbed.clock != "virtual" or len(testbed.machines) > 1:
        return None
    longest_ns = max(one.rtt.ns for one in cell.traffic) + sum(map(held_ns, cell.links))
    ping_ns = round(_PING_S * NANOSECONDS_PER_SECOND) + 3 * longest_ns
    bursts_ns = sum(each.watch_ns + each.refills * each.refill_every_ns + each.drain_ns for each in bursts)
    planned_ns = pairs * ping_ns + bursts_ns + settle_ns
    step_ns = _ROUND_S * NANOSECONDS_PER_SECOND
    return (planned_ns + _ALLOWANCE_S * NANOSECONDS_PER_SECOND) // step_ns * step_ns + step_ns
