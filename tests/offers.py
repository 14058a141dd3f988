"""What a testbed might offer, for tests: records only."""

from fabbbr.model import Host, Switch
from fabbbr.reserve.records import Offer, Project, Room, Site
from fabbbr.spec.experiment import SliceChoice
from fabbbr.topology import Link, Pair, Topology

ALL_TAGS = (
    "Slice.Multisite", "VM.NoLimit", "Component.SmartNIC", "Slice.NoLimitLifetime",
)  # fmt: skip


def room(available, capacity=1000):
    return Room(capacity=capacity, available=available)


def site(
    name,
    *,
    state="active",
    cores=100,
    ram_gb=1000,
    disk_gb=10_000,
    basic=50,
    smart=2,
    where=None,
    workers=None,
):
    return Site(
        name=name,
        state=state,
        workers=(f"{name.lower()}-w1", f"{name.lower()}-w2") if workers is None else workers,
        location=where,
        cores=room(cores),
        ram_gb=room(ram_gb),
        disk_gb=room(disk_gb),
        nics={"NIC_Basic": room(basic), "NIC_ConnectX_6": room(smart)},
    )


WHERE = {
    "DALL": (32.8, -96.8), "TACC": (30.4, -97.7), "SALT": (40.8, -111.9), "UTAH": (40.8, -111.8),
    "FIU": (25.8, -80.4), "WASH": (38.9, -77.0), "GPN": (39.0, -94.6),
}  # fmt: skip


def offer(*, tags=ALL_TAGS, keys=(), **changed):
    """All sites active with room but those ``changed``: name → keywords of :func:`site`, None: not there."""
    sites = {
        name: site(name, where=where, **changed.get(name, {}))
        for name, where in WHERE.items()
        if changed.get(name, {}) is not None
    }
    return Offer(sites=sites, project=Project(id="p1", name="tcp", tags=tuple(tags)), keys=tuple(keys))


CHOICE = SliceChoice(name="two_site")


def two_site(near="DALL", far="SALT"):
    return Topology(
        hosts=(Host(name="h1", site=near), Host(name="h2", site=far)),
        switches=(Switch(name="s1", site=near),),
        links=(Link(name="access", a="h1", b="s1"), Link(name="trunk", a="s1", b="h2", bottleneck=True)),
        pairs=(Pair(sender="h1", receiver="h2"),),
    )
