"""Slices that the tests ask for."""

from fabbbr.reserve.records import CableWish, MachineWish, Reservation, Size
from fabbbr.spec.experiment import SliceChoice

SMALL = Size(cores=2, ram_gb=8, disk_gb=10)


def machine(name, site, **changes):
    wish = {
        "name": name,
        "site": site,
        "nodes": (name,),
        "size": SMALL,
        "image": "default_ubuntu_22",
        **changes,
    }
    return MachineWish(**wish)


def cable(link, a, b, kind, nic="NIC_Basic"):
    return CableWish(link=link, a=a, b=b, a_machine=a, b_machine=b, kind=kind, nic=nic)


def reservation(name, machines, cables, lease_s=86400.0):
    return Reservation(
        name=name,
        definition=SliceChoice(name="two_site"),
        machines=tuple(machines),
        cables=tuple(cables),
        lease_s=lease_s,
    )


def two_sites(name, near, far, **changes):
    """A host and a switch at one site, a host at another."""
    return reservation(
        name,
        (machine("h1", near), machine("sw", near), machine("h2", far)),
        (cable("l1", "h1", "sw", "L2Bridge"), cable("l2", "sw", "h2", "L2STS")),
        **changes,
    )


def all_kinds(name, near, far):
    """Every kind of network, over shares of cards and whole cards."""
    return reservation(
        name,
        (
            machine("h1", near),
            machine("sw", near),
            machine("h2", far),
            machine("h3", far, image="default_rocky_9"),
        ),
        (
            cable("l1", "h1", "sw", "L2Bridge"),
            cable("l2", "sw", "h2", "L2PTP", "NIC_ConnectX_6"),
            cable("l3", "sw", "h3", "L2PTP", "NIC_ConnectX_6"),
            cable("l4", "h1", "h3", "FABNetv4"),
            cable("l5", "h1", "h2", "L2STS"),
        ),
    )
