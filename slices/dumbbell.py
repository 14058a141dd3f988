"""h1..hn – s1 – s2 – r1..rn: n pairs of hosts across one bottleneck."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fabbbr.model import Host, Switch
from fabbbr.topology import Link, Pair, Topology


def dumbbell(
    *,
    hosts: Annotated[int, Field(ge=1, le=200)] = 2,
    left_site: str | None = None,
    right_site: str | None = None,
) -> Topology:
    """``hosts`` on each side; flows take the pairs in turn."""
    numbers = range(1, hosts + 1)
    return Topology(
        hosts=(
            *(Host(name=f"h{i}", site=left_site) for i in numbers),
            *(Host(name=f"r{i}", site=right_site) for i in numbers),
        ),
        switches=(Switch(name="s1", site=left_site), Switch(name="s2", site=right_site)),
        links=(
            *(Link(name=f"in{i}", a=f"h{i}", b="s1") for i in numbers),
            Link(name="trunk", a="s1", b="s2", bottleneck=True),
            *(Link(name=f"out{i}", a="s2", b=f"r{i}") for i in numbers),
        ),
        pairs=tuple(Pair(sender=f"h{i}", receiver=f"r{i}") for i in numbers),
    )
