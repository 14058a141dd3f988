"""The packet burst: one probe that measures rate, buffer and loss of the bottleneck.

All packets enter the bottleneck at one instant. What does not fit into the buffer is dropped there, and what
fits leaves at exactly the bottleneck's rate, which the receiver's kernel time stamps show.
"""

import json
import socket
import struct
import subprocess
import time
from typing import Any, Dict, List, Tuple

from .namespace import Namespaces

_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_SO_SNDBUFFORCE = 32
_STAMP = struct.Struct("=qq")
_SEQUENCE = struct.Struct("=I")
_TRUESIZE_BYTES = 18_000


def burst(namespaces: Namespaces, probe: Dict[str, Any]) -> Dict[str, Any]:
    """Send the burst and its refills; return arrivals [[sequence, nanoseconds], …] and the queue at its fullest."""
    total = probe["packets"] + probe["refills"] * probe["refill_packets"]
    receiver = _socket(namespaces, probe["receiver"], total)
    receiver.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    receiver.bind(("", probe["port"]))
    sender = _socket(namespaces, probe["sender"], total)
    sender.bind(("", probe["source_port"]))
    sender.connect((probe["receiver_address"], probe["port"]))
    padding = bytes(probe["payload_bytes"] - _SEQUENCE.size)
    # Started beforehand: starting it afterwards would take long enough for the queue to drain a little.
    looker = namespaces.start(
        probe["watch_node"], ["tc", "-s", "-j", "-batch", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    started = time.monotonic()
    for sequence in range(probe["packets"]):
        sender.send(_SEQUENCE.pack(sequence) + padding)
    look_at = started + probe["watch_ns"] * 1e-9
    queues = None
    for number in range(probe["refills"]):
        due = started + (number + 1) * probe["refill_every_ns"] * 1e-9
        # Where a delay lies ahead of the queue, refills must be on their way before the burst has arrived.
        if queues is None and due > look_at:
            queues = _look(looker, look_at)
        _sleep_until(due)
        first = probe["packets"] + number * probe["refill_packets"]
        for sequence in range(first, first + probe["refill_packets"]):
            sender.send(_SEQUENCE.pack(sequence) + padding)
    if queues is None:
        queues = _look(looker, look_at)
    time.sleep(probe["drain_ns"] * 1e-9)
    arrivals = _receive_all(receiver)
    receiver.close()
    sender.close()
    return {
        "sent": total,
        "refills_from": probe["packets"],
        "payload_bytes": probe["payload_bytes"],
        "arrivals": arrivals,
        "queues_at_peak": queues,
    }


def _look(looker: "subprocess.Popen[bytes]", instant: float) -> Any:
    """The queues at ``instant``, as tc tells them."""
    _sleep_until(instant)
    told, _ = looker.communicate(b"qdisc show\n")
    return json.loads(told.decode() or "[]")


def _sleep_until(instant: float) -> None:
    pause = instant - time.monotonic()
    if pause > 0:
        time.sleep(pause)


def _socket(namespaces: Namespaces, node: str, packets: int) -> socket.socket:
    with namespaces.inside(node):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    memory = min(packets * _TRUESIZE_BYTES + (1 << 20), 1 << 30)
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, memory)
    made.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, memory)
    return made


def _receive_all(receiver: socket.socket) -> List[Tuple[int, int]]:
    arrivals: List[Tuple[int, int]] = []
    receiver.settimeout(0.0)
    while True:
        try:
            data, ancillary, _, _ = receiver.recvmsg(_SEQUENCE.size, socket.CMSG_SPACE(_STAMP.size))
        except BlockingIOError:
            return arrivals
        seconds, nanoseconds = _STAMP.unpack(ancillary[0][2])
        arrivals.append((_SEQUENCE.unpack(data)[0], seconds * 1_000_000_000 + nanoseconds))
