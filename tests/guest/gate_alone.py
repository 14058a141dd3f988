"""Runs in a guest: datagrams of known instants and sizes through a gate, a – w – b; says when each came.

``gate_alone.py AGENT GATE SENDS``: the folder above the agent's, the gate's task without its interfaces, and
[[milliseconds after the trace begins, bytes of IP packet], …], as JSON.
"""

import json
import os
import socket
import struct
import sys
import time

SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
PORT = 4000
MACS = {"a0": "02:00:00:00:00:01", "b0": "02:00:00:00:00:02"}


def main() -> None:
    task, sends = json.loads(sys.argv[2]), json.loads(sys.argv[3])
    from agent import gate, namespace

    with namespace.made(["a", "w", "b"]) as inside:
        _cable(inside)
        receiver, sender = _receiver(inside), _sender(inside)
        place = {"node": "w", "into": "w0", "out": "w1", "queue_node": "a", "interface": "a0"}
        started = gate.Gate(inside, {**task, **place})
        zero_ns = _send(started, sender, sends, task["until_ms"])
        arrivals = list(_arrived(receiver, zero_ns))
        sys.stdout.write(json.dumps({"arrivals": arrivals, "shown": started.shown()}))
        started.close()


def _cable(inside):
    from agent import network

    for node in ("a", "w", "b"):
        with inside.inside(node):
            network._switch_off_ipv6()  # it would send packets of its own
    for here, there in (("a", "w0"), ("b", "w1")):
        near = f"name {here}0 address {MACS[f'{here}0']} netns {inside.path(here)}"
        inside.ip(None, [f"link add {near} type veth peer name {there} netns {inside.path('w')}"])
    inside.ip("a", ["addr add 10.0.0.1/24 dev a0", "link set a0 up"])
    inside.ip("w", ["link set w0 up", "link set w1 up"])
    inside.ip("b", ["addr add 10.0.0.2/24 dev b0", "link set b0 up"])
    time.sleep(3)
    inside.ip("a", [f"neigh replace 10.0.0.2 lladdr {MACS['b0']} dev a0 nud permanent"])
    for line in ("qdisc add dev w0 clsact", "filter add dev w0 ingress matchall action drop"):
        assert inside.run({"node": "w", "argv": ["tc", *line.split()]})["exit"] == 0


def _receiver(inside):
    with inside.inside("b"):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind(("", PORT))
    receiver.settimeout(0.0)
    return receiver


def _sender(inside):
    with inside.inside("a"):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(("10.0.0.2", PORT))
    return sender


def _send(started, sender, sends, until_ms):
    """Nanoseconds of the receiver's clock at which the trace began."""
    from agent.instants import sleep_until

    epoch = float(int(time.monotonic()) + 1)
    zero_ns = time.time_ns() - time.monotonic_ns() + int(epoch) * 10**9
    started.begin(epoch)
    for number, (at_ms, size) in enumerate(sends):
        sleep_until(epoch + at_ms * 1e-3)
        sender.send(struct.pack("=I", number) + bytes(size - 28 - 4))
    sleep_until(epoch + until_ms * 1e-3)
    return zero_ns


def _arrived(receiver, zero_ns):
    while True:
        try:
            data, ancillary, _, _ = receiver.recvmsg(4, socket.CMSG_SPACE(16))
        except BlockingIOError:
            return
        seconds, nanoseconds = struct.unpack("=qq", ancillary[0][2])
        at_ns = seconds * 10**9 + nanoseconds - zero_ns
        yield [struct.unpack("=I", data)[0], at_ns / 1e6]


if __name__ == "__main__":
    agent = sys.argv[1]
    os.environ["PYTHONPATH"] = agent
    sys.path.insert(0, agent)
    main()
