"""A guest takes no more memory than is set aside for it, and not much less."""

import pytest
from guest.cells import experiment

from benchmarks.guest_memory import taken
from fabbbr.backends.guest import GuestBackend
from fabbbr.backends.guest import memory as room
from fabbbr.plan.opening import open_plan

pytestmark = pytest.mark.guest
CELLS = {
    "one flow": ("rate: 20 Mbit/s, rtt: 20 ms", "{cca: cubic, duration: 5 s}", ""),
    "many flows": ("rate: 20 Mbit/s, rtt: 20 ms", "{cca: bbr1, duration: 5 s, count: 40}", ""),
    "a deep queue": ("rate: 200 Mbit/s, rtt: 200 ms, buffer: 24 BDP", "{cca: reno, duration: 15 s}", ""),
    "captures": ("rate: 50 Mbit/s, rtt: 20 ms", "{cca: cubic, duration: 8 s}", "capture: [trunk]"),
}


@pytest.mark.parametrize("what", CELLS)
def test_what_is_set_aside_is_enough_and_not_twice_as_much(tmp_path, what):
    path, flows, more = CELLS[what]
    peak, aside = taken(experiment("room", path=path, flows=flows, more=more), tmp_path)
    assert peak <= aside < 2 * peak


def test_cells_of_deep_queues_run_fewer_at_a_time_where_memory_is_scarce(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "free_memory_bytes", lambda: 3 << 30)
    monkeypatch.setattr(room, "cpus_at_once", lambda: 16)
    at_once = {}
    backend = object.__new__(GuestBackend)
    for what in ("one flow", "a deep queue"):
        path, flows, _ = CELLS[what]
        file = tmp_path / "room.yaml"
        file.write_text(experiment("room", path=path, flows=flows), encoding="utf-8")
        at_once[what] = backend.cells_at_once(None, open_plan(str(file), seed=1).cells)
    assert at_once["one flow"] == 16 > at_once["a deep queue"] >= 1
    assert backend.cells_at_once(20, ()) == 20
