"""A chain of bottlenecks: one long flow crosses all of them, one cross flow each.

h1 – s1 =hop1= s2 =hop2= s3 – r1, and for every hop k a sender xk beside its first switch and a receiver yk
beside its second. A scalar ``rate`` and ``rtt`` hold for every hop, so the long
path is ``hops`` times as far.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fabbbr.model import Host, Switch
from fabbbr.topology import Link, Pair, Topology


def parking_lot(*, hops: Annotated[int, Field(ge=1, le=50)] = 2) -> Topology:
    """The first pair is the long one, then one pair per hop."""
    numbers = range(1, hops + 1)
    return Topology(
        hosts=(
            Host(name="h1"),
            Host(name="r1"),
            *(Host(name=f"x{k}") for k in numbers),
            *(Host(name=f"y{k}") for k in numbers),
        ),
        switches=tuple(Switch(name=f"s{k}") for k in range(1, hops + 2)),
        links=(
            Link(name="in", a="h1", b="s1"),
            *(Link(name=f"hop{k}", a=f"s{k}", b=f"s{k + 1}", bottleneck=True) for k in numbers),
            Link(name="out", a=f"s{hops + 1}", b="r1"),
            *(Link(name=f"in{k}", a=f"x{k}", b=f"s{k}") for k in numbers),
            *(Link(name=f"out{k}", a=f"s{k + 1}", b=f"y{k}") for k in numbers),
        ),
        pairs=(
            Pair(sender="h1", receiver="r1"),
            *(Pair(sender=f"x{k}", receiver=f"y{k}") for k in numbers),
        ),
    )
