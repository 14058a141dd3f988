"""The packet burst: one probe that measures rate, buffer and loss of the bottleneck.

All packets enter the bottleneck at one instant. What does not fit into the buffer is dropped there, and what
fits leaves at exactly the bottleneck's rate, which the receiver's kernel time stamps show.
"""

import json
import socket
import subprocess
import time
from typing import Any, Dict, List, Optional, Tuple

from . import volley
from .instants import sleep_until
from .namespace import Namespaces
from .stamps import SO_TIMESTAMPNS
from .timeline import Barrier

_SO_RCVBUFFORCE = 33
_SO_SNDBUFFORCE = 32
_TRUESIZE_BYTES = 18_000
_SHOW = b"qdisc show\n"
_LOOKS = 32
_LOOK_S = 1e-4


def burst(
    namespaces: Namespaces, probe: Dict[str, Any], barrier: Barrier, stages: Tuple[str, str]
) -> Dict[str, Any]:
    """Send the burst and its refills; return arrivals [[sequence, nanoseconds], …] and the queue at its fullest.

    ``stages`` of the barrier are the instant of the sending, and when all of it is sent.
    Refills before which the queue had run dry are told too, as [first sequence, first that is not in it].
    Whoever sends, receives or looks may be on another machine: then what it sees is left out.
    """
    total = probe["packets"] + probe["refills"] * probe["refill_packets"]
    receiver = _receiver(namespaces, probe, total) if namespaces.has(probe["receiver"]) else None
    sender = _sender(namespaces, probe, total) if namespaces.has(probe["sender"]) else None
    look = _Look(namespaces, probe) if namespaces.has(probe["watch_node"]) else None
    sending, draining = stages
    started = barrier.start(sending)
    late = []
    if sender is not None:
        late = _send(sender, probe, started, look)
        sender.close()
    if look is not None:
        look.take(started)
    barrier.wait(draining)
    time.sleep(probe["drain_ns"] * 1e-9)
    told = {"sent": total, "refills_from": probe["packets"], "payload_bytes": probe["payload_bytes"]}
    if late:
        told["late"] = late
    if receiver is not None:
        told["arrivals"] = list(volley.received(receiver))
        receiver.close()
    if look is not None:
        told["queues_at_peak"] = look.queues
    return told


class _Look:
    """A look at the queues when the whole burst stands in them.

    Who does not send here does not know when the last packet is on its way: then there are several, ever rarer,
    of which the latest is told first. The highest backlog among them is the peak.
    """

    def __init__(self, namespaces: Namespaces, probe: Dict[str, Any]) -> None:
        self.queues: Any = None
        looks = 1 if namespaces.has(probe["sender"]) else _LOOKS
        self._after_s = [probe["watch_ns"] * 1e-9 + _LOOK_S * number**2 for number in range(looks)]
        # Started beforehand: starting it afterwards would take long enough for the queue to drain a little.
        self._tc = namespaces.start(
            probe["watch_node"],
            ["tc", "-s", "-j", "-batch", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def comes_before(self, due: float, started: float) -> bool:
        """Whether it is still to be taken, and due first."""
        return self.queues is None and due > started + self._after_s[0]

    def take(self, started: float) -> None:
        """Ask tc, unless that is done."""
        if self.queues is None:
            for after_s in self._after_s[:-1]:
                sleep_until(started + after_s)
                self._ask()
            sleep_until(started + self._after_s[-1])
            told, _ = self._tc.communicate(_SHOW)
            looks = [json.loads(line) for line in told.decode().splitlines()]
            self.queues = [queue for look in reversed(looks) for queue in look]

    def _ask(self) -> None:
        assert self._tc.stdin is not None
        self._tc.stdin.write(_SHOW)
        self._tc.stdin.flush()


def _send(
    sender: socket.socket, probe: Dict[str, Any], started: float, look: Optional[_Look]
) -> List[List[int]]:
    """The refills that were late."""
    late = []
    volley.send(sender, 0, probe["packets"], probe["payload_bytes"])
    for number in range(probe["refills"]):
        due = started + (number + 1) * probe["refill_every_ns"] * 1e-9
        # Where a delay lies ahead of the queue, refills must be on their way before the burst has arrived.
        if look is not None and look.comes_before(due, started):
            look.take(started)
        sleep_until(due)
        first = probe["packets"] + number * probe["refill_packets"]
        volley.send(sender, first, probe["refill_packets"], probe["payload_bytes"])
        if time.monotonic() > due + probe["spare_ns"] * 1e-9:
            late.append([first, first + probe["refill_packets"]])
    return late


def _receiver(namespaces: Namespaces, probe: Dict[str, Any], packets: int) -> socket.socket:
    made = _socket(namespaces, probe["receiver"], packets)
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    made.bind(("", probe["port"]))
    return made


def _sender(namespaces: Namespaces, probe: Dict[str, Any], packets: int) -> socket.socket:
    made = _socket(namespaces, probe["sender"], packets)
    made.bind(("", probe["source_port"]))
    made.connect((probe["receiver_address"], probe["port"]))
    return made


def _socket(namespaces: Namespaces, node: str, packets: int) -> socket.socket:
    with namespaces.inside(node):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    memory = min(packets * _TRUESIZE_BYTES + (1 << 20), 1 << 30)
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, memory)
    made.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, memory)
    return made
