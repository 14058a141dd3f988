"""h1, h2 – s1 – h3: two senders at different distances share one bottleneck.

Give the distances by sender, ``rtt: {h1: 61 ms, h2: 113 ms}``: they are emulated on the access links.
"""

from __future__ import annotations

from fabbbr.model import Host, Switch
from fabbbr.topology import Link, Pair, Topology


def rtt_pair(
    *, near_site: str | None = None, far_site: str | None = None, receiver_site: str | None = None
) -> Topology:
    """On a testbed the switch stands at the near sender's site."""
    return Topology(
        hosts=(
            Host(name="h1", site=near_site),
            Host(name="h2", site=far_site),
            Host(name="h3", site=receiver_site),
        ),
        switches=(Switch(name="s1", site=near_site),),
        links=(
            Link(name="near", a="h1", b="s1"),
            Link(name="far", a="h2", b="s1"),
            Link(name="trunk", a="s1", b="h3", bottleneck=True),
        ),
        pairs=(Pair(sender="h1", receiver="h3"), Pair(sender="h2", receiver="h3")),
    )
