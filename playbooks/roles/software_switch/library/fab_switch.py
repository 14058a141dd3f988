#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_switch
short_description: The conditions at the ports of a software switch
description:
  - Sets bottlenecks (TBF, with an AQM), loss and delay (netem) at interfaces, and joins them to a bridge if
    asked.
  - All is set in one batch and read back; on any difference, and on any failure, what was set before is set
    again.
  - Interfaces that are as asked are not touched; those that change begin with an empty queue.
  - Remembers what was there before, and gives it back. Nothing of it outlives a boot.
options:
  interfaces:
    description: The ports with their settings. A port that is no longer named gets back what it had.
    type: list
    elements: dict
    default: []
    suboptions:
      interface:
        description: Name or MAC address.
        type: str
        required: true
      rate_bps:
        description: What leaves here is paced to this many bits per second; a multiple of 8.
        type: int
      burst_bytes:
        description:
          - What may leave at once; at least what the rate sends in a tick of the kernel's timer, and a frame.
        type: int
      buffer_bytes:
        description: What may queue.
        type: int
      aqm:
        description: Who drops from the queue.
        type: str
        choices: [taildrop, codel, fq_codel, pie, fq_pie, red, cake]
        default: taildrop
      ecn:
        description: Whether the AQM marks instead where it can.
        type: bool
        default: false
      frame_bytes:
        description: A full frame; AQMs but C(red) and C(cake) hold as many as make C(buffer_bytes).
        type: int
        default: 1514
      loss:
        description: The share lost of the packets that leave here, 0 to 1; not together with C(rate_bps).
        type: float
      delay_s:
        description: By how much what leaves here is delayed; not together with C(rate_bps).
        type: float
      limit_packets:
        description: How many packets the line with this loss and delay holds.
        type: int
      arriving_loss:
        description: The share of packets lost of what arrives here, before it goes anywhere.
        type: float
      arriving_delay_s:
        description: By how much what arrives here is delayed, before it goes anywhere.
        type: float
      arriving_limit_packets:
        description: How many packets that line holds.
        type: int
  state:
    description: C(absent) gives back what was there. C(verified) changes nothing and fails on any difference.
    type: str
    choices: [present, absent, verified]
    default: present
  bridge:
    description: The bridge that joins the ports; it is made if need be. Without one nothing is joined.
    type: str
    default: ""
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
    description: Shows what is not as asked, and the settings that replace it.
author: The fabbbr authors
"""

EXAMPLES = """
- name: A bottleneck of 100 Mbit/s with 2 BDP of 20 ms, and 0.1 % of loss ahead of it
  fab_switch:
    record: /run/switch.json
    bridge: br0
    interfaces:
      - interface: "02:7F:AE:1B:44:02"
        rate_bps: 100000000
        burst_bytes: 50000
        buffer_bytes: 500000
      - interface: enp8s0
        arriving_loss: 0.001
        arriving_limit_packets: 10000
"""

RETURN = """
bridge:
  description: The bridge that joins the ports; empty for none.
  type: str
  returned: success
  sample: br0
differences:
  description: What was found that is not as asked, before anything was changed.
  type: list
  elements: str
  returned: success
  sample: ["eth1: rate of tbf is 6250000 instead of 12500000"]
interfaces:
  description: Name → settings in force that were asked for, in check mode those that would be.
  type: dict
  returned: success
  sample: {eth1: {rate_bps: 100000000, burst_bytes: 50000, buffer_bytes: 500000, aqm: taildrop}}
"""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fab_link import Link, all_links, find_links
from ansible.module_utils.fab_node import Node, Record, RefusedError, answer
from ansible.module_utils.fab_queues import (
    AQM_OPTIONS,
    DEFAULT_HANDLE,
    Port,
    arriving_differences,
    arriving_lines,
    differences,
    lines_of,
    port_of,
    stand_in,
)

PORT_SPEC = {
    "interface": {"type": "str", "required": True},
    "rate_bps": {"type": "int"},
    "burst_bytes": {"type": "int"},
    "buffer_bytes": {"type": "int"},
    "aqm": {"type": "str", "choices": ["taildrop", *AQM_OPTIONS], "default": "taildrop"},
    "ecn": {"type": "bool", "default": False},
    "frame_bytes": {"type": "int", "default": 1514},
    "loss": {"type": "float"},
    "delay_s": {"type": "float"},
    "limit_packets": {"type": "int"},
    "arriving_loss": {"type": "float"},
    "arriving_delay_s": {"type": "float"},
    "arriving_limit_packets": {"type": "int"},
}
ARGUMENT_SPEC = {
    "interfaces": {"type": "list", "elements": "dict", "default": [], "options": PORT_SPEC},
    "state": {"type": "str", "choices": ["present", "absent", "verified"], "default": "present"},
    "bridge": {"type": "str", "default": ""},
    "record": {"type": "path", "required": True},
    "refuse_default_route": {"type": "bool", "default": True},
}
NOTHING = Port(leaving=None, arriving=None)


class Layout(NamedTuple):
    """A switch as it is to be."""

    bridge: str
    """Empty for none."""
    ports: Dict[str, Dict[str, Any]]
    """Name → its settings, as they were asked for."""

    def at(self, name: str) -> Port:
        return port_of(name, self.ports[name]) if name in self.ports else NOTHING


class Kept(NamedTuple):
    """What is remembered: what was last set, and what there was before it."""

    layout: Layout
    bridge_made: bool
    """Whether the bridge is ours, and goes with us."""
    were_down: Sequence[str]
    """The ports that were down."""


class Told(NamedTuple):
    """What the node tells of itself."""

    links: Dict[str, Link]
    qdiscs: Sequence[Dict[str, Any]]

    def of(self, device: str) -> List[Dict[str, Any]]:
        return [one for one in self.qdiscs if one.get("dev") == device]

    def occupied(self, device: str) -> bool:
        """Whether somebody set a queueing discipline there."""
        return any(one.get("root") and one["handle"] != DEFAULT_HANDLE for one in self.of(device))

    def has_clsact(self, device: str) -> bool:
        return any(one["kind"] in ("clsact", "ingress") for one in self.of(device))


def main() -> None:
    answer(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True), ensure)


def ensure(node: Node, asked: Dict[str, Any], *, check_mode: bool) -> Dict[str, Any]:
    """Have the layout in force; the return values of this module."""
    record = Record(node.path(asked["record"]))
    kept = kept_from(record.read())
    told = ask(node)
    wanted = wanted_layout(node, asked)
    if asked["state"] != "absent":
        require_free(wanted, kept, told)
    wrong = wrongs(node, wanted, kept.layout, told)
    if asked["state"] == "verified" and wrong:
        msg = "the switch is not as it was asked for: {}".format("; ".join(wrong))
        raise RefusedError(msg)
    if wrong and not check_mode:
        change(node, wanted, kept, told, record)
    elif asked["state"] == "absent" and not check_mode:
        record.remove()
    return {
        "changed": bool(wrong),
        "differences": wrong,
        "bridge": wanted.bridge,
        "interfaces": wanted.ports,
        "diff": {"before": "".join(line + "\n" for line in wrong), "after": as_text(wanted) if wrong else ""},
    }


def wanted_layout(node: Node, asked: Dict[str, Any]) -> Layout:
    if asked["state"] == "absent":
        return Layout(bridge="", ports={})
    names = [one["interface"] for one in asked["interfaces"]]
    links = find_links(node, names, refuse_default_route=asked["refuse_default_route"])
    settings = {
        link.name: {key: value for key, value in one.items() if key != "interface" and value is not None}
        for link, one in zip(links, asked["interfaces"])
    }
    layout = Layout(bridge=asked["bridge"], ports=settings)
    led = [stand_in(name) for name in settings if layout.at(name).arriving is not None]
    if len(set(led)) < len(led):
        msg = "two of the interfaces {} have the same first 12 letters: rename one".format(
            ", ".join(settings)
        )
        raise RefusedError(msg)
    return layout


def ask(node: Node) -> Told:
    links = {link.name: link for link in all_links(node)}
    return Told(links=links, qdiscs=node.require_json("tc", "-r", "-j", "qdisc", "show"))


def require_free(wanted: Layout, kept: Kept, told: Told) -> None:
    """Refuse to replace what was set by others, since it could not be given back."""
    there = told.links.get(wanted.bridge)
    if there is not None and there.kind != "bridge":
        msg = f"{wanted.bridge} is no bridge: give the bridge another name"
        raise RefusedError(msg)
    for name in wanted.ports:
        if name not in kept.layout.ports:
            reason = why_taken(name, wanted, told)
            if reason:
                msg = f"interface {name} {reason}"
                raise RefusedError(msg)


def why_taken(name: str, wanted: Layout, told: Told) -> Optional[str]:
    """What others have at an interface, and how to remove it; None where it is free."""
    if told.occupied(name):
        found = " + ".join("{} {}".format(one["kind"], one["handle"]) for one in told.of(name))
        return (
            f"has queueing disciplines that others set ({found}) and that could not be given back: remove "
            f"them first (tc qdisc del dev {name} root)"
        )
    if wanted.at(name).arriving is not None and told.has_clsact(name):
        return f"has filters of others for what arrives: remove them first (tc qdisc del dev {name} clsact)"
    master = told.links[name].master
    if wanted.bridge and master not in ("", wanted.bridge):
        return f"is a port of {master}: take it out first (ip link set {name} nomaster)"
    return None


def wrongs(node: Node, wanted: Layout, earlier: Layout, told: Told) -> List[str]:
    """What is not as wanted. What was set earlier and is no longer wanted is wrong too."""
    found: List[str] = []
    for name in dict.fromkeys([*wanted.ports, *earlier.ports]):
        if name in told.links:
            found += wrongs_at(node, name, wanted.at(name), earlier.at(name), told)
    found += bridge_wrongs(wanted, earlier, told)
    return found


def wrongs_at(node: Node, name: str, wanted: Port, earlier: Port, told: Told) -> List[str]:
    found = list(differences(name, wanted.leaving, told.qdiscs))
    if wanted.arriving is None and earlier.arriving is None:
        return found
    filters = ()
    if told.has_clsact(name):
        filters = node.require_json("tc", "-j", "filter", "show", "dev", name, "ingress")
    found += arriving_differences(name, wanted.arriving is not None, filters)
    if wanted.arriving is not None:
        found += differences(stand_in(name), wanted.arriving, told.qdiscs)
    return found


def bridge_wrongs(wanted: Layout, earlier: Layout, told: Told) -> Iterator[str]:
    if wanted.bridge:
        for name in (*wanted.ports, wanted.bridge):
            link = told.links.get(name)
            if link is None or not link.up:
                yield "{} is {}".format(name, "not up" if link else "not there")
            elif wanted.bridge not in (name, link.master):
                yield f"{name} is no port of {wanted.bridge}"
    if earlier.bridge:
        for name in earlier.ports:
            link = told.links.get(name)
            still = link is not None and link.master == earlier.bridge
            if still and (earlier.bridge != wanted.bridge or name not in wanted.ports):
                yield f"{name} is a port of {earlier.bridge} still"


def change(node: Node, wanted: Layout, kept: Kept, told: Told, record: Record) -> None:
    """Set it and read it back; after a failure what was set before is set again."""
    earlier = record.read()
    now = Kept(
        layout=wanted,
        bridge_made=kept.bridge_made
        if wanted.bridge == kept.layout.bridge
        else wanted.bridge not in told.links,
        were_down=sorted({*kept.were_down, *(name for name in wanted.ports if not told.links[name].up)}),
    )
    # First what there will be to take away: should we be killed, the next run finds it.
    both = Layout(bridge=wanted.bridge, ports={**kept.layout.ports, **wanted.ports})
    record.write(as_record(now._replace(layout=both)))
    try:
        set_in_order(node, now, kept)
    except RefusedError as refusal:
        put_back(node, kept, now, refusal)
        record.write(earlier)
        raise
    record.write(as_record(now) if wanted.ports or wanted.bridge else {})


def put_back(node: Node, kept: Kept, now: Kept, refusal: RefusedError) -> None:
    try:
        set_in_order(node, kept, now)
    except RefusedError as again:
        msg = f"{refusal}. What was set before could not be set again either: {again}"
        raise RefusedError(msg) from again


def set_in_order(node: Node, goal: Kept, earlier: Kept) -> None:
    """Links, then in one batch all that stands at the ports, then links that are no longer needed."""
    told = ask(node)
    batch(node, "ip", links_before(goal.layout, told))
    told = ask(node)
    batch(node, "tc", list(queue_lines(node, goal.layout, earlier.layout, told)))
    batch(node, "ip", links_after(goal, earlier, told))
    wrong = wrongs(node, goal.layout, earlier.layout, ask(node))
    if wrong:
        msg = "read back after setting: {}".format("; ".join(wrong))
        raise RefusedError(msg)


def batch(node: Node, tool: str, lines: Sequence[str]) -> None:
    if lines:
        said = node.run(tool, "-batch", "-", stdin="\n".join(lines) + "\n")
        if said.status != 0:
            msg = f"{tool} refused: {said_of_line(said.reason, lines)}"
            raise RefusedError(msg)


def said_of_line(reason: str, lines: Sequence[str]) -> str:
    """What tc or ip said, with the line that it names by number."""
    number = reason.rpartition("Command failed -:")[2]
    line = lines[int(number) - 1] if number.isdigit() and int(number) <= len(lines) else ""
    return f"{reason} ({line})" if line else reason


def links_before(goal: Layout, told: Told) -> List[str]:
    lines = []
    if goal.bridge and goal.bridge not in told.links:
        lines.append(f"link add {goal.bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0")
    for name in goal.ports:
        if goal.at(name).arriving is not None and stand_in(name) not in told.links:
            lines.append(f"link add {stand_in(name)} type ifb")
            lines.append(f"link set dev {stand_in(name)} up")
        if goal.bridge:
            lines.append(f"link set dev {name} master {goal.bridge} up")
    if goal.bridge:
        lines.append(f"link set dev {goal.bridge} up")
    return lines


def queue_lines(node: Node, goal: Layout, earlier: Layout, told: Told) -> Iterator[str]:
    """Of every port that is not as wanted, all that stands there anew."""
    for name in dict.fromkeys([*goal.ports, *earlier.ports]):
        if name not in told.links:
            continue
        port, before = goal.at(name), earlier.at(name)
        if not wrongs_at(node, name, port, before, told):
            continue
        if told.occupied(name):
            yield f"qdisc del dev {name} root"
        yield from lines_of(name, port.leaving)
        if (port.arriving or before.arriving) and told.has_clsact(name):
            yield f"qdisc del dev {name} clsact"
        if port.arriving is not None:
            if told.occupied(stand_in(name)):
                yield f"qdisc del dev {stand_in(name)} root"
            yield from lines_of(stand_in(name), port.arriving)
            yield from arriving_lines(name)


def links_after(goal: Kept, earlier: Kept, told: Told) -> List[str]:
    """What the earlier layout had and this one has not."""
    lines = []
    gone = earlier.layout.bridge and earlier.layout.bridge != goal.layout.bridge
    for name in earlier.layout.ports:
        left = name not in goal.layout.ports
        if name in told.links and told.links[name].master == earlier.layout.bridge != "" and (left or gone):
            lines.append(f"link set dev {name} nomaster")
        if name in told.links and left and name in earlier.were_down:
            lines.append(f"link set dev {name} down")
        if (
            goal.layout.at(name).arriving is None
            and stand_in(name) in told.links
            and earlier.layout.at(name).arriving
        ):
            lines.append(f"link del dev {stand_in(name)}")
    if gone and earlier.bridge_made and earlier.layout.bridge in told.links:
        lines.append(f"link del dev {earlier.layout.bridge}")
    return lines


def kept_from(remembered: Dict[str, Any]) -> Kept:
    return Kept(
        layout=Layout(bridge=remembered.get("bridge", ""), ports=remembered.get("ports", {})),
        bridge_made=remembered.get("bridge_made", False),
        were_down=remembered.get("were_down", []),
    )


def as_record(kept: Kept) -> Dict[str, Any]:
    return {
        "bridge": kept.layout.bridge,
        "ports": kept.layout.ports,
        "bridge_made": kept.bridge_made,
        "were_down": list(kept.were_down),
    }


def as_text(layout: Layout) -> str:
    lines = [f"bridge {layout.bridge}\n"] if layout.bridge else []
    for name, settings in sorted(layout.ports.items()):
        words = [f"{key} {value}" for key, value in sorted(settings.items())]
        lines.append("{}: {}\n".format(name, ", ".join(words)))
    return "".join(lines)


if __name__ == "__main__":
    main()
