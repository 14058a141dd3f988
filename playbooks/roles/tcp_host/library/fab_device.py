#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_device
short_description: MTU, offloads and queueing discipline of data-plane interfaces
description:
  - Sets them, reads them back, and fails on any difference. Where one is refused, all are as they were.
  - Refuses the interface over which the node is managed.
  - Remembers what was there before, and gives it back. Nothing of it outlives a boot.
options:
  interfaces:
    description: Names or MAC addresses of the interfaces.
    type: list
    elements: str
    default: []
  state:
    description: C(absent) gives back what was there, of all interfaces in the record.
    type: str
    choices: [present, absent]
    default: present
  mtu_bytes:
    description: The MTU; without one it stays as it is.
    type: int
  offloads:
    description:
      - Offload, by its long or short name in C(ethtool -K), and whether it is on. Others stay as they are.
    type: dict
    default: {}
  qdisc:
    description:
      - The queueing discipline with its default settings, like C(fq); on an interface with several transmit
        queues one for each, below C(mq). Without one it stays as it is.
    type: str
  record:
    description: The file on the node in which it remembers. It must not outlive a boot (C(/run)).
    type: path
    required: true
  refuse_default_route:
    description: Whether an interface with a default route is one over which the node is managed.
    type: bool
    default: true
attributes:
  check_mode:
    support: full
    description: Says what it would change.
  diff_mode:
    support: full
    description: Shows the settings before and after.
author: The fabbbr authors
"""

EXAMPLES = """
- name: Pace flows on the data plane, with jumbo frames
  fab_device:
    interfaces: ["02:7F:AE:1B:44:02", enp8s0]
    mtu_bytes: 8900
    qdisc: fq
    offloads: {lro: false}
    record: /run/devices.json
"""

RETURN = """
interfaces:
  description: Name → settings in force of those that were asked for, in check mode those that would be.
  type: dict
  returned: success
  sample: {enp8s0: {mtu_bytes: 8900, offloads: {large-receive-offload: "off"}, qdisc: fq}}
"""

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fab_link import all_links, find_links
from ansible.module_utils.fab_node import Node, Record, RefusedError, answer

ARGUMENT_SPEC = {
    "interfaces": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "mtu_bytes": {"type": "int"},
    "offloads": {"type": "dict", "default": {}},
    "qdisc": {"type": "str"},
    "record": {"type": "path", "required": True},
    "refuse_default_route": {"type": "bool", "default": True},
}
LONG_NAMES = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
}
DEFAULT = "default"
"""The queueing discipline that the kernel gives by itself."""

Settings = Dict[str, Any]
"""``mtu_bytes``, ``offloads`` and ``qdisc`` of one interface, each only where it is of interest."""


class Change(NamedTuple):
    """One interface, from one set of settings to another; both name the same settings."""

    name: str
    now: Settings
    to: Settings

    @property
    def needed(self) -> bool:
        return self.now != self.to

    def back(self) -> "Change":
        return Change(self.name, self.to, self.now)


def main() -> None:
    answer(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True), ensure)


def ensure(node: Node, asked: Dict[str, Any], *, check_mode: bool) -> Dict[str, Any]:
    """Have the settings in force; the return values of this module."""
    record = Record(node.path(asked["record"]))
    kept = record.read()
    changes, remembered = asked_for(node, asked, kept)
    needed = [change for change in changes if change.needed]
    if not check_mode:
        record.write({**kept, **remembered})
        try:
            carry_out(node, needed)
        except RefusedError:
            record.write(kept)
            raise
        record.write(remembered)
    return {
        "changed": bool(needed),
        "interfaces": {change.name: change.to for change in changes},
        "diff": {
            "before": "".join(as_text(change.name, change.now) for change in needed),
            "after": "".join(as_text(change.name, change.to) for change in needed),
        },
    }


def asked_for(node: Node, asked: Dict[str, Any], kept: Dict[str, Any]) -> Tuple[List[Change], Dict[str, Any]]:
    """The changes, and what will be remembered. Interfaces that are no longer named get theirs back."""
    wanted = wanted_settings(asked)
    named = asked["interfaces"] if asked["state"] == "present" else []
    links = find_links(node, named, refuse_default_route=asked["refuse_default_route"])
    names = [link.name for link in links]
    dropped = {name: before for name, before in kept.items() if name not in names}
    changes: List[Change] = []
    remembered: Dict[str, Any] = {}
    for link in links:
        now = in_force(node, link.name, wanted)
        change = Change(link.name, now, wanted)
        before = kept.get(link.name, {})
        if change.needed and "qdisc" in wanted and "qdisc" not in before and now["qdisc"] != wanted["qdisc"]:
            require_default_queue(link.name, now["qdisc"])
        if change.needed or before:
            remembered[link.name] = with_older(before, now)
        changes.append(change)
    return changes + list(giving_back(node, dropped)), remembered


def wanted_settings(asked: Dict[str, Any]) -> Settings:
    wanted: Settings = {}
    if asked["mtu_bytes"] is not None:
        wanted["mtu_bytes"] = asked["mtu_bytes"]
    if asked["offloads"]:
        wanted["offloads"] = {
            LONG_NAMES.get(name, name): "on" if as_bool(name, on) else "off"
            for name, on in asked["offloads"].items()
        }
    if asked["qdisc"]:
        wanted["qdisc"] = asked["qdisc"]
    return wanted


def as_bool(name: str, on: object) -> bool:
    if not isinstance(on, bool):
        msg = f"offload {name} is {on!r}: say true or false"
        raise RefusedError(msg)
    return on


def with_older(before: Settings, now: Settings) -> Settings:
    """What was there first: settings in ``before``, and of ``now`` those that it does not have."""
    offloads = {**now.get("offloads", {}), **before.get("offloads", {})}
    return {**now, **before, **({"offloads": offloads} if offloads else {})}


def require_default_queue(name: str, found: str) -> None:
    if found != DEFAULT:
        msg = (
            f"interface {name} has a queueing discipline that others set ({found}) and that could not be "
            f"given back: remove it first (tc qdisc del dev {name} root)"
        )
        raise RefusedError(msg)


def giving_back(node: Node, kept: Dict[str, Any]) -> Iterator[Change]:
    """The changes to what was there; an interface that has gone needs none."""
    there = {link.name for link in all_links(node)}
    for name, before in sorted(kept.items()):
        if name in there:
            yield Change(name, in_force(node, name, before), before)


def in_force(node: Node, name: str, asked: Settings) -> Settings:
    """Of one interface, the same settings as in ``asked``."""
    now: Settings = {}
    if "mtu_bytes" in asked:
        now["mtu_bytes"] = next(link.mtu for link in all_links(node) if link.name == name)
    if "offloads" in asked:
        told = node.require("ethtool", "-k", name)
        now["offloads"] = {feature: state_of(name, feature, told) for feature in asked["offloads"]}
    if "qdisc" in asked:
        now["qdisc"] = queue_of(node.require_json("tc", "-j", "qdisc", "show", "dev", name), asked["qdisc"])
    return now


def state_of(name: str, feature: str, told: str) -> str:
    match = re.search(rf"^\s*{re.escape(feature)}: (on|off)\b", told, re.MULTILINE)
    if match is None:
        msg = f"interface {name} has no offload {feature} (ethtool -k {name} lists those that it has)"
        raise RefusedError(msg)
    return match.group(1)


def queue_of(qdiscs: Sequence[Dict[str, Any]], wanted: str) -> str:
    """The queueing discipline: ``wanted`` if it is that, ``default`` if nobody set one, or what there is.

    Below ``mq`` there is one for each transmit queue.
    """
    root = [one for one in qdiscs if one.get("root")]
    leaves = [one for one in qdiscs if "parent" in one and one["kind"] not in ("clsact", "ingress")]
    kinds = {one["kind"] for one in (leaves if root and root[0]["kind"] == "mq" else root)}
    if kinds == {wanted}:
        return wanted
    if all(one["handle"] == "0:" for one in root + leaves):
        return DEFAULT
    return "+".join(one["kind"] for one in root + leaves)


def carry_out(node: Node, changes: Sequence[Change]) -> None:
    """Set and read back; after a refusal everything is as it was before."""
    begun = []
    try:
        for change in changes:
            begun.append(change)
            apply(node, change)
            read_back(node, change)
    except RefusedError as refusal:
        for change in reversed(begun):
            apply(node, Change(change.name, in_force(node, change.name, change.now), change.now))
        msg = f"{refusal}; all interfaces are as they were"
        raise RefusedError(msg) from refusal


def apply(node: Node, change: Change) -> None:
    for setting, value in change.to.items():
        if change.now[setting] == value:
            continue
        if setting == "mtu_bytes":
            node.require("ip", "link", "set", "dev", change.name, "mtu", str(value))
        elif setting == "offloads":
            switch(node, change.name, {f: to for f, to in value.items() if change.now[setting][f] != to})
        else:
            node.require("tc", "-batch", "-", stdin="".join(queue_lines(node, change.name, value)))


def switch(node: Node, name: str, offloads: Dict[str, str]) -> None:
    """Switch offloads; the read-back tells which of them an interface does not let itself be told."""
    node.run("ethtool", "-K", name, *(word for pair in sorted(offloads.items()) for word in pair))


def queue_lines(node: Node, name: str, wanted: str) -> Iterator[str]:
    if wanted == DEFAULT:
        yield f"qdisc del dev {name} root\n"
        return
    count = sum(1 for _ in node.path(f"sys/class/net/{name}/queues").glob("tx-*"))
    if count <= 1:
        yield f"qdisc replace dev {name} root {wanted}\n"
        return
    yield f"qdisc replace dev {name} root handle 1: mq\n"
    for queue in range(1, count + 1):
        # tc reads the minor number of a class as hexadecimal.
        yield f"qdisc replace dev {name} parent 1:{queue:x} {wanted}\n"


def read_back(node: Node, change: Change) -> None:
    told = in_force(node, change.name, change.to)
    if told != change.to:
        msg = "interface {} has {} after it was asked for {}".format(
            change.name, as_text("", told).strip(), as_text("", change.to).strip()
        )
        raise RefusedError(msg)


def as_text(name: str, settings: Settings) -> str:
    words = [f"{key} {value}" for key, value in sorted(settings.items()) if key != "offloads"]
    words += [f"{key} {value}" for key, value in sorted(settings.get("offloads", {}).items())]
    return "{} {}\n".format(name, ", ".join(words))


if __name__ == "__main__":
    main()
