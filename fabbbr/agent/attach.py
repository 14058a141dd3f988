"""Puts interfaces of this machine into nodes, and back where they were: cables of the network, not of ours.

Such an interface is found by its MAC address, for the name that it has here is the machine's own affair. In the
node it has the job's name and MTU. Afterwards it is what it was: name, MTU, addresses, up or down.
"""

import contextlib
import json
import signal
from typing import Any, Dict, Iterator, List, Optional

from .namespace import Namespaces


@contextlib.contextmanager
def attached(inside: Namespaces, sides: List[Dict[str, Any]], mtu: int) -> Iterator[None]:
    """In this block each of ``sides``, which are interfaces of the job, is in its node, down."""
    with contextlib.ExitStack() as stack:
        for side in sides:
            was = _found(inside, side)
            # Before it moves: whatever stops this part in between, the interface is looked for in its node.
            stack.callback(_give_back, inside, side, was)
            inside.ip(None, ["link set dev %s netns %s" % (was["ifname"], inside.path(side["node"]))])
            inside.ip(
                side["node"],
                [
                    "link set dev %s name %s" % (was["ifname"], side["name"]),
                    "link set dev %s mtu %d" % (side["name"], mtu),
                ],
            )
        # First of all on the way out: who gives back is not to be stopped.
        stack.callback(signal.signal, signal.SIGTERM, signal.SIG_IGN)
        yield


def _found(inside: Namespaces, side: Dict[str, Any]) -> Dict[str, Any]:
    """The interface of this machine that has the MAC address of ``side``, as ip shows it."""
    here = [link for link in _links(inside, None) if link.get("address") == side["mac"].lower()]
    if len(here) != 1:
        names = ", ".join(link["ifname"] for link in here) or "none"
        raise OSError(
            "%s of the job is the interface with MAC %s, and this machine has %s of it; say which by its MAC"
            % (side["name"], side["mac"], names)
        )
    return here[0]


def _give_back(inside: Namespaces, side: Dict[str, Any], was: Dict[str, Any]) -> None:
    node = side["node"]
    now = [link["ifname"] for link in _links(inside, node) if link.get("address") == was["address"]]
    if not now:
        return
    lines = ["link set dev %s down" % now[0]]
    if now[0] != was["ifname"]:
        lines.append("link set dev %s name %s" % (now[0], was["ifname"]))
    lines.append("link set dev %s netns %s" % (was["ifname"], inside.path(None)))
    inside.ip(node, lines)
    inside.ip(None, _as_it_was(was))


def _as_it_was(was: Dict[str, Any]) -> List[str]:
    name = was["ifname"]
    lines = ["link set dev %s mtu %d" % (name, was["mtu"])]
    if "UP" in was["flags"]:
        lines.append("link set dev %s up" % name)
    return lines + [
        "addr replace %s/%d dev %s" % (address["local"], address["prefixlen"], name)
        for address in was["addr_info"]
        if address.get("scope") == "global"
    ]


def _links(inside: Namespaces, node: Optional[str]) -> List[Dict[str, Any]]:
    answer = inside.run({"node": node, "argv": ["ip", "-j", "addr", "show"]})
    if answer["exit"] != 0:
        raise OSError("ip addr show: %s" % answer["stderr"].strip())
    links: List[Dict[str, Any]] = json.loads(answer["stdout"])
    return links
