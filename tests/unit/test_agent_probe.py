"""The look at the queues, when the burst stands in them."""

import subprocess
import sys
import time

import pytest

from fabbbr.agent.probe import _Look

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
