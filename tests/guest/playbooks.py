"""Run inside a guest, whose kernel has netem and fq: the playbooks on name spaces, with real Ansible.

``python -m guest.playbooks WORK`` leaves ``WORK/told.json``: what each run changed, what was then in force.
"""

import dataclasses
import json
import sys
import traceback
from pathlib import Path

from rooms import Room, inventory, two_hosts_and_a_switch

BOTTLENECK = {"rate_bps": 100_000_000, "burst_bytes": 50_000, "buffer_bytes": 500_000}
FAST = {"rate_bps": 10_000_000_000, "burst_bytes": 1_250_000, "buffer_bytes": 25_000_000}
LINE = {"loss": 0.000123, "delay_s": 0.012345, "limit_packets": 20_000}
SETTINGS = {
    "taildrop": BOTTLENECK,
    "10 Gbit/s": FAST,
    "codel": {**BOTTLENECK, "aqm": "codel"},
    "codel, ecn": {**BOTTLENECK, "aqm": "codel", "ecn": True},
    "fq_codel": {**BOTTLENECK, "aqm": "fq_codel"},
    "fq_codel, ecn": {**BOTTLENECK, "aqm": "fq_codel", "ecn": True},
    "pie": {**BOTTLENECK, "aqm": "pie"},
    "pie, ecn": {**BOTTLENECK, "aqm": "pie", "ecn": True},
    "fq_pie": {**BOTTLENECK, "aqm": "fq_pie"},
    "fq_pie, ecn": {**BOTTLENECK, "aqm": "fq_pie", "ecn": True},
    "red": {**BOTTLENECK, "aqm": "red"},
    "red, ecn": {**BOTTLENECK, "aqm": "red", "ecn": True},
    "cake": {**BOTTLENECK, "aqm": "cake"},
    "line": LINE,
    "loss alone": {"loss": 0.5, "limit_packets": 1000},
    "delay alone": {"delay_s": 0.25, "limit_packets": 1000},
    "nothing": {},
}
"""What may stand at a port. What tc told of each is in ``tests/golden/qdiscs.json``."""
PORTS = [
    {"interface": "s1-eth1", "delay_s": 0.01, "limit_packets": 10_000,
     "arriving_delay_s": 0.02, "arriving_loss": 0.0001, "arriving_limit_packets": 10_000},
    {"interface": "s1-eth2", **BOTTLENECK, "aqm": "fq_codel"},
]  # fmt: skip
RECORD = "/run/switch.json"


def main(work):
    folder = Path("/run/room")
    folder.mkdir()
    room = Room(folder)
    two_hosts_and_a_switch(room)
    room.says(
        "ip", "-n", "h1", "link", "add", "h1-eth1", "numtxqueues", "4", "numrxqueues", "4", "type", "veth",
        "peer", "name", "h1-eth2", "numtxqueues", "4", "numrxqueues", "4",
    )  # fmt: skip
    room.says("ip", "-n", "h1", "link", "set", "h1-eth1", "up")
    told = {}
    try:
        told["ports"] = ports(room)
        told["refused"] = refused(room)
        told["story"] = story(room)
    except Exception:  # noqa: BLE001 - the test looks at it
        told["crash"] = traceback.format_exc()
    (work / "told.json").write_text(json.dumps(told, indent=1))


def ports(room):
    """Each setting: whether it was a change, and again the second time; and what was in force."""
    told = {}
    for name, settings in SETTINGS.items():
        asked = {"record": RECORD, "interfaces": [{"interface": "s1-eth2", **settings}]}
        first = room.ask("software_switch", "fab_switch", node="s1", **asked)
        second = room.ask("software_switch", "fab_switch", node="s1", **asked)
        told[name] = {"first": first, "second": second, "told": room.qdiscs("s1", "s1-eth2")}
    room.ask("software_switch", "fab_switch", node="s1", record=RECORD, state="absent")
    return told


def refused(room):
    """The second port has a delay that tc cannot take, after the first one was set already."""
    before = [{"interface": "s1-eth1", **LINE}, PORTS[1]]
    after = [{"interface": "s1-eth1", **FAST}, {"interface": "s1-eth2", "delay_s": 300, "limit_packets": 9}]
    room.ask("software_switch", "fab_switch", node="s1", record=RECORD, interfaces=before)
    said = room.ask("software_switch", "fab_switch", node="s1", record=RECORD, interfaces=after)
    told = {
        "said": said,
        "verified": room.ask(
            "software_switch", "fab_switch", node="s1", record=RECORD, interfaces=before, state="verified"
        ),
    }
    room.ask("software_switch", "fab_switch", node="s1", record=RECORD, state="absent")
    return told


def story(room):
    """A whole life: prepare twice, conditions twice, a ping, restore."""
    asked = inventory(
        room.folder,
        ports=PORTS,
        hosts={"tcp_host_qdisc": "fq"},
        switches={
            "software_switch_qdiscs": ["tbf", "netem", "codel", "fq_codel", "pie", "fq_pie", "red", "cake"]
        },
    )
    asked["fabbbr"]["children"]["tcp_hosts"]["hosts"]["h1"]["tcp_host_interfaces"].append("h1-eth1")
    told = {"before": queues(room)}
    for name, playbook in (
        ("prepared", "prepare.yml"),
        ("prepared again", "prepare.yml"),
        ("set", "conditions.yml"),
        ("set again", "conditions.yml"),
    ):
        told[name] = dataclasses.asdict(room.play(playbook, asked))
    told["in force"] = queues(room)
    # The first answers ARP questions, which are delayed as well.
    room.run("ping", "-c", "1", "10.0.0.2", node="h1")
    told["ping"] = room.says("ping", "-c", "3", "10.0.0.2", node="h1")
    told["restored"] = dataclasses.asdict(room.play("restore.yml", asked))
    told["after"] = queues(room)
    return told


def queues(room):
    return {
        f"{node} {device}": [f"{one['kind']} {one['handle']}" for one in room.qdiscs(node, device)]
        for node, device in (
            ("h1", "h1-eth0"), ("h1", "h1-eth1"), ("h2", "h2-eth0"), ("s1", "s1-eth1"), ("s1", "s1-eth2"),
        )
    }  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
