"""The burst over loopback, and the look at the queues when it stands in them."""

import contextlib
import os
import subprocess
import sys
import time

import pytest
from agent_ends import free_port

from fabbbr.agent import probe as probes
from fabbbr.agent.probe import _Look, burst

TC = """
import json, sys, time
for number, line in enumerate(sys.stdin):
    assert line == "qdisc show\\n"
    print(json.dumps([{"look": number, "at_s": time.monotonic()}]))
"""
WATCH_S = 0.2


class Machine:
    """Name spaces of which only the question matters who is here."""

    def __init__(self, here):
        self._here = here

    def has(self, node):
        return node in self._here

    def start(self, node, argv, **options):
        assert (node, argv[0]) == ("s1", "tc")
        return subprocess.Popen((sys.executable, "-u", "-c", TC), **options)


@pytest.mark.parametrize(("here", "looks"), [({"h1", "s1"}, 1), ({"s1"}, 32)])
def test_who_sends_looks_once_and_who_does_not_looks_often_and_tells_the_latest_first(here, looks):
    look = _Look(Machine(here), {"sender": "h1", "watch_node": "s1", "watch_ns": int(WATCH_S * 1e9)})
    started = time.monotonic()
    assert look.comes_before(started + WATCH_S + 0.001, started)
    assert not look.comes_before(started + WATCH_S - 0.001, started)
    look.take(started)
    assert [queue["look"] for queue in look.queues] == list(range(looks))[::-1]
    assert all(queue["at_s"] >= started + WATCH_S for queue in look.queues)
    assert look.queues[0]["at_s"] >= started + WATCH_S + 1e-4 * (looks - 1) ** 2
    look.take(started)
    assert len(look.queues) == looks


class Loopback:
    """One machine, on which nobody looks."""

    def has(self, node):
        return node != "s1"

    def inside(self, node):
        return contextlib.nullcontext()


class Clock:
    """Shows what it was last set to; ``late`` says after which waits it shows more than was waited for."""

    def __init__(self, late, by_s):
        self.shows, self.waits, self.late, self.by_s = 100.0, 0, late, by_s

    def monotonic(self):
        return self.shows

    def sleep_until(self, instant):
        self.shows = max(self.shows, instant) + (self.by_s if self.waits in self.late else 0)
        self.waits += 1

    def sleep(self, seconds):
        self.shows += seconds

    def start(self, stage):
        return self.shows

    def wait(self, stage):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="buffers beyond the limit are for root")
@pytest.mark.parametrize(
    ("late", "by_s", "dry"), [(set(), 0, []), ({1}, 0.41, [1]), ({0, 3}, 0.41, [0, 3]), ({1}, 0.39, [])]
)
def test_refills_before_which_the_queue_ran_dry_are_told(monkeypatch, late, by_s, dry):
    clock, port = Clock(late, by_s), free_port()
    monkeypatch.setattr(probes, "sleep_until", clock.sleep_until)
    monkeypatch.setattr(probes, "time", clock)
    told = burst(
        Loopback(),
        {
            "sender": "h1", "receiver": "h2", "receiver_address": "127.0.0.1", "watch_node": "s1",
            "packets": 10, "refills": 4, "refill_packets": 5, "refill_every_ns": 500_000_000,
            "spare_ns": 400_000_000, "payload_bytes": 1000, "source_port": 0, "port": port,
            "watch_ns": 0, "drain_ns": 0,
        },
        clock,
        ("burst", "drain"),
    )  # fmt: skip
    assert [number for number, _ in told["arrivals"]] == list(range(told["sent"]))
    assert told.get("late", []) == [[10 + 5 * one, 15 + 5 * one] for one in dry]
