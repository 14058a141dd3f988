"""Run inside a guest: ``python -m guest.two_ends`` prints what the ends of each scenario tell, as JSON.

Loopback delays each packet, so every instant is known beforehand.
"""

import json
import signal
import subprocess
import sys
import time

from agent_ends import both_ends, receiver_of, told, told_by_both

ONE_WAY_S = 0.010
VIDEO_S, CHUNK_S, BUFFER_S, CHUNK_BYTES = 1.0, 0.1, 0.3, 10_000
DATAGRAMS, GAP_S, PAYLOAD_BYTES = 40, 0.010, 100
PACED_BYTES, PACE_BPS = 4_000_000, 16_000_000
STOPPED_AFTER_S = 1.5


def ns(seconds):
    return round(seconds * 1e9)


def ended(*ends, status):
    """What each prints, once all are done with this exit status."""
    documents = [told(end) for end in ends]
    assert {end.returncode for end in ends} == {status}
    return documents


def datagrams():
    receive = ("--payload", PAYLOAD_BYTES, "--patience-ns", ns(0.1))
    leaving = ("--count", DATAGRAMS, "--gap-ns", ns(GAP_S), "--lateness-ns", ns(1))
    return told_by_both("datagrams", receive, ("--payload", PAYLOAD_BYTES, *leaving))


def video():
    long = ("--duration-ns", ns(VIDEO_S))
    player = ("--chunk-bytes", CHUNK_BYTES, "--chunk-ns", ns(CHUNK_S), "--buffer-ns", ns(BUFFER_S))
    return told_by_both("video", (*long, *player), (*long, "--congestion", "cubic"))


def paced():
    with both_ends(PACED_BYTES, more=("--pacing", PACE_BPS)) as ends:
        return ended(*ends, status=0)


def stopped_flow():
    with both_ends(10_000_000, more=("--pacing", 800_000)) as ends:
        time.sleep(STOPPED_AFTER_S)
        ends[0].send_signal(signal.SIGTERM)
        return ended(*ends, status=1)


def middle_of_a_block():
    with receiver_of(10_000) as (receiver, sender):
        sender.send(bytes(1000))
        time.sleep(1.5)
        sender.send(bytes(9000))
        sender.close()
        return ended(receiver, status=0)


def stopped_receiver(came):
    with receiver_of(10_000) as (receiver, sender):
        sender.send(bytes(came))
        time.sleep(0.5)
        receiver.send_signal(signal.SIGTERM)
        return ended(receiver, status=1)


SCENARIOS = {
    "datagrams": datagrams,
    "video": video,
    "paced": paced,
    "stopped_flow": stopped_flow,
    "middle_of_a_block": middle_of_a_block,
    "stopped_before_a_byte": lambda: stopped_receiver(0),
    "stopped_in_a_block": lambda: stopped_receiver(1000),
}


def main():
    for words in ("ip link set lo up", f"tc qdisc add dev lo root netem delay {ONE_WAY_S * 1e3:g}ms"):
        subprocess.run(words.split(), check=True)
    json.dump({name: [json.loads(end) for end in play()] for name, play in SCENARIOS.items()}, sys.stdout)


if __name__ == "__main__":
    main()
