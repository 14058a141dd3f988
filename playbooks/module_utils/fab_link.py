# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""Interfaces of a node: those that are named, and the one over which the node is managed."""

import ipaddress
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

from ansible.module_utils.fab_node import Node, RefusedError

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_BORROWERS = ("bridge", "vlan", "macvlan", "bond", "team", "ifb")
"""Kinds of interfaces that may show the MAC address of another."""


class Link(NamedTuple):
    """One interface."""

    name: str
    mac: str
    mtu: int
    up: bool
    master: str
    """The bridge that it is a port of; empty for none."""
    kind: str
    """``bridge``, ``veth`` and the like; empty for a network card."""


def all_links(node: Node) -> List[Link]:
    return [_link(record) for record in node.require_json("ip", "-d", "-j", "link", "show")]


def _link(record: Dict[str, Any]) -> Link:
    return Link(
        name=record["ifname"],
        mac=record.get("address", "").lower(),
        mtu=int(record.get("mtu", 0)),
        up="UP" in record.get("flags", ()),
        master=record.get("master", ""),
        kind=record.get("linkinfo", {}).get("info_kind", ""),
    )


def find_links(node: Node, wanted: Sequence[str], *, refuse_default_route: bool) -> List[Link]:
    """The interfaces with these names or MAC addresses, in this order; RefusedError where one is not fit."""
    links = all_links(node)
    found = [_find(links, name) for name in wanted]
    names = [link.name for link in found]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        msg = "interface {} is named more than once".format(", ".join(doubled))
        raise RefusedError(msg)
    reasons = management(node, refuse_default_route=refuse_default_route)
    for link in found:
        if link.name in reasons:
            msg = (
                f"interface {link.name} {reasons[link.name]}: it is the node's way to its manager and no "
                "data-plane interface; name another"
            )
            raise RefusedError(msg)
    return found


def _find(links: Sequence[Link], wanted: str) -> Link:
    if _MAC.fullmatch(wanted.lower()):
        fit = [link for link in links if link.mac == wanted.lower() and link.kind not in _BORROWERS]
    else:
        fit = [link for link in links if link.name == wanted]
    if len(fit) != 1:
        shown = ", ".join(f"{link.name} ({link.mac})" for link in fit or links)
        trouble = (
            "no interface is called or has MAC address" if not fit else "several interfaces have MAC address"
        )
        msg = "{} {}; {} {}".format(trouble, wanted, "they are" if fit else "there are", shown)
        raise RefusedError(msg)
    if fit[0].name == "lo":
        msg = "interface lo is no data-plane interface"
        raise RefusedError(msg)
    return fit[0]


def management(node: Node, *, refuse_default_route: bool) -> Dict[str, str]:
    """Interface → why it must not be touched, and with it those that it stands on."""
    reasons = dict.fromkeys(_with_default_route(node), "has a default route") if refuse_default_route else {}
    reasons.update(dict.fromkeys(_with_address(node, ssh_server_address()), "carries this SSH connection"))
    # A port of a bridge is as much the way as the bridge.
    for link in all_links(node):
        if link.master in reasons:
            reasons.setdefault(link.name, f"is a port of {link.master}, which {reasons[link.master]}")
    return reasons


def _with_default_route(node: Node) -> Iterator[str]:
    for family in ("-4", "-6"):
        for route in node.require_json("ip", family, "-j", "route", "show", "default"):
            for hop in (route, *route.get("nexthops", ())):
                if "dev" in hop:
                    yield hop["dev"]


def _with_address(node: Node, address: str) -> Iterator[str]:
    if address:
        for record in node.require_json("ip", "-j", "addr", "show"):
            if any(_same_address(one.get("local", ""), address) for one in record.get("addr_info", ())):
                yield record["ifname"]


def _same_address(one: str, other: str) -> bool:
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return False


def ssh_server_address() -> str:
    """The node's own address of the SSH connection that this runs under; empty where there is none.

    sudo takes SSH_CONNECTION out of the environment, but a parent process still has it.
    """
    process = os.getpid()
    while process > 1:
        address = _server_of(process)
        if address:
            return address
        process = _parent_of(process)
    return ""


def _server_of(process: int) -> str:
    try:
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    for variable in variables:
        name, _, value = variable.partition(b"=")
        words = value.decode("ascii", "replace").split()
        if name == b"SSH_CONNECTION" and len(words) == 4:
            # A link-local address comes with its interface: fe80::1%eth0.
            return words[2].partition("%")[0].replace("::ffff:", "")
    return ""


def _parent_of(process: int) -> int:
    try:
        # The command's name, in parentheses, may hold spaces.
        return int(Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
