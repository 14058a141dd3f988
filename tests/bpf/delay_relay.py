"""Carries Ethernet frames between two interfaces after a fixed delay: delay_relay.py ONE OTHER SECONDS."""

import selectors
import socket
import sys
import time
from collections import deque

ETH_P_ALL = 3
LARGEST_FRAME = 65536


def main() -> None:
    one, other = (bound_to(name) for name in sys.argv[1:3])
    delay_s = float(sys.argv[3])
    out_of = {one: other, other: one}
    waiting: deque[tuple[float, socket.socket, bytes]] = deque()
    readable = selectors.DefaultSelector()
    for end in out_of:
        readable.register(end, selectors.EVENT_READ)
    while True:
        timeout_s = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
        for key, _ in readable.select(timeout_s):
            take(key.fileobj, out_of[key.fileobj], waiting, delay_s)
        while waiting and waiting[0][0] <= time.monotonic():
            _, out, frame = waiting.popleft()
            try:
                out.send(frame)
            except OSError:
                continue  # the queue behind it is full: that is a drop


def take(source, out, waiting, delay_s: float) -> None:
    """Put into ``waiting`` whatever has come; a frame's delay begins once it is here, never before."""
    while True:
        try:
            frame, (_, _, kind, *_) = source.recvfrom(LARGEST_FRAME)
        except BlockingIOError:
            return
        if kind != socket.PACKET_OUTGOING:
            waiting.append((time.monotonic() + delay_s, out, frame))


def bound_to(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    end.bind((interface, ETH_P_ALL))
    end.setblocking(False)
    return end


if __name__ == "__main__":
    main()
