"""h1 – s1 – h2: one sender, one receiver, one bottleneck."""

from __future__ import annotations

from fabbbr.model import Host, Switch
from fabbbr.topology import Link, Pair, Topology


def two_site(*, sender_site: str | None = None, receiver_site: str | None = None) -> Topology:
    """The switch stands at the sender's site, so that the WAN is between the queue and the receiver."""
    return Topology(
        hosts=(Host(name="h1", site=sender_site), Host(name="h2", site=receiver_site)),
        switches=(Switch(name="s1", site=sender_site),),
        links=(
            Link(name="access", a="h1", b="s1"),
            Link(name="trunk", a="s1", b="h2", bottleneck=True),
        ),
        pairs=(Pair(sender="h1", receiver="h2"),),
    )
