"""Who coordinates: one instant for all clocks, one failure for all parts, and nothing of it left."""

import dataclasses
import threading
import time

import pytest
from golden_cell import CELL
from made_up_testbed import Clock
from places import GUEST, several

from fabbbr.backends import machines
from fabbbr.backends.base import CancelledError, Task
from fabbbr.backends.channel import ChannelError
from fabbbr.backends.machine import Machine
from fabbbr.errors import BackendError, PlaceLostError
from fabbbr.job.build import prepare
from fabbbr.testbed import ClockOffset

STAGES = ("configure", "pings", "burst", "drain", "flows", "over", "collect")


class Double(Machine):
    """A machine whose agent is ready for each stage as soon as it was told to go on with the last."""

    def __init__(self, name, ahead_s=0.0, said=(), stages=STAGES):
        self.name = name
        self.stages = stages
        self.clock_s = None
        self.ahead_s = ahead_s
        self.files = {"ready.configure": "1"} | dict(said)
        self.order = []
        self.fails_at = None
        self.killed = False
        self.started = self.hung_up = False
        self.now = time.monotonic

    def start(self, patience_s):
        self.started = True
        self.files.setdefault("coordinator", "0")

    def away_s(self):
        return 0.0

    def tell(self, name, line):
        self.files[name] = line
        self.order.append((name, self.now()))
        if name == self.fails_at:
            self.files["fails"] = "1"
        if name.startswith("go."):
            following = self.stages[self.stages.index(name[3:]) + 1 :]
            self.files[f"ready.{following[0]}" if following else "outcome.json"] = "1"

    def told(self, *names):
        if "fails" in self.files:
            message = f"machine {self.name}: it broke"
            raise BackendError(message)
        return {name: self.files[name] for name in names if name in self.files}

    def wake(self, patience_s):
        self.files["outcome.json"] = "1"

    def ended(self):
        return not self.killed or "outcome.json" in self.files

    def fetch_log(self, to):
        (to / "console.log").write_bytes(b"its words\n")

    def forget(self):
        self.files.clear()

    def hang_up(self):
        self.hung_up = True

    def clock(self):
        return ClockOffset(offset_s=self.ahead_s, bound_s=1e-4)

    def goes(self):
        return {name[3:]: float(line) for name, line in self.files.items() if name.startswith("go.")}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(machines, "_POLL_S", 0.001)


@pytest.fixture
def task(tmp_path):
    (tmp_path / "raw").mkdir()
    return Task(
        job=prepare(CELL, GUEST).job, work=tmp_path, seed=1, wall_limit_s=60,
        cancelled=threading.Event(),
        progress=lambda _: None,
    )  # fmt: skip


def lost(*_, **__):
    message = "no route"
    raise ChannelError(message)


def coordinator(task, *doubles):
    return machines._Coordinator(task, list(doubles))


def test_burst_and_flows_begin_at_one_instant_which_each_machine_is_told_on_its_own_clock(task):
    one, other = Double("a", ahead_s=1000.0), Double("b", ahead_s=-50.0)
    before = time.monotonic()
    clocks = coordinator(task, one, other).hold()
    for stage in ("burst", "flows"):
        assert one.goes()[stage] - 1000.0 == pytest.approx(other.goes()[stage] + 50.0, abs=1e-8)
        assert one.goes()[stage] - 1000.0 > before
    assert [stage for stage, instant in one.goes().items() if instant == 0] == [
        "configure", "pings", "drain", "over", "collect",
    ]  # fmt: skip
    assert clocks["a"].measured.keys() == {"burst", "flows", "after"}
    assert {clock.offset_s for clock in clocks["b"].measured.values()} == {-50.0}
    assert clocks["b"].flows_s == other.goes()["flows"]


@pytest.mark.parametrize(("probe", "drain"), [("burst_back", "drain_back"), ("train", "drain_train")])
def test_a_probe_after_the_burst_begins_at_one_instant_of_its_own(task, probe, drain):
    """Through a way back with a rate of its own, or to see what comes late."""
    more = task.job.model_copy(update={probe: task.job.burst})
    stages = (*STAGES[:4], probe, drain, *STAGES[4:])
    doubles = [Double(name, ahead_s=ahead_s, stages=stages) for name, ahead_s in (("a", 1000.0), ("b", 0.0))]
    clocks = coordinator(dataclasses.replace(task, job=more), *doubles).hold()
    one, other = (double.goes() for double in doubles)
    assert tuple(one) == stages
    assert one[probe] - 1000.0 == pytest.approx(other[probe], abs=1e-8)
    assert clocks["a"].measured.keys() == {"burst", probe, "flows", "after"}


def test_an_instant_lies_ahead_when_the_last_machine_is_told(task):
    one, other = Double("a", ahead_s=1000.0), Double("b")
    coordinator(task, one, other).hold()
    told_at = dict(other.order)["go.flows"]
    assert told_at < other.goes()["flows"]


def test_where_telling_takes_long_an_instant_lies_further_ahead(task, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(machines, "time", clock)
    monkeypatch.setattr(machines, "_LEAD_S", 0.02)
    one, other = Double("a"), Double("b")
    for double in (one, other):
        double.now = clock.monotonic

        def slowly(name, line, double=double):
            clock.sleep(0.05)
            Double.tell(double, name, line)

        double.tell = slowly
    coordinator(task, one, other).hold()
    for double in (one, other):
        assert dict(double.order)["go.flows"] < double.goes()["flows"]


def test_machines_ping_one_after_the_other(task):
    one, other = Double("a"), Double("b")
    one.tell = lambda name, line: Double.tell(one, name, line) if name != "go.pings" else held(name, line)
    seen = []

    def held(name, line):
        one.files[name] = line
        threading.Timer(
            0.05, lambda: (seen.append("go.pings" in other.files), Double.tell(one, name, line))
        ).start()

    coordinator(task, one, other).hold()
    assert seen == [False]


def carry_out(task, monkeypatch, *doubles):
    by_name = {double.name: double for double in doubles}
    monkeypatch.setattr(machines, "Machine", lambda name, channel, part, folder: by_name[name])
    nodes = [node.name for node in task.job.nodes]
    placement = dict.fromkeys(nodes, "a") | {nodes[-1]: "b"}
    return machines.carry_out(task, several(placement), {"a": None, "b": None})


def test_when_one_part_fails_all_are_told_to_stop_and_why_and_their_words_are_kept(task, monkeypatch):
    one, other = Double("a"), Double("b")
    other.fails_at = "go.burst"
    with pytest.raises(BackendError, match="machine b: it broke"):
        carry_out(task, monkeypatch, one, other)
    for double in (one, other):
        assert "abort" in dict(double.order)
        assert double.hung_up
    assert (task.work / "raw" / "console.log").read_text() == "--- a\nits words\n--- b\nits words\n"


def test_nothing_of_an_agent_that_was_killed_stays(task, monkeypatch):
    monkeypatch.setattr(machines, "_ABORT_S", 0.1)
    one, other = Double("a"), Double("b")
    one.killed, one.fails_at = True, "go.burst"
    with pytest.raises(BackendError, match="machine a: it broke"):
        carry_out(task, monkeypatch, one, other)
    assert (one.files, other.files) == ({}, {})


def test_a_machine_whose_agent_was_not_started_is_not_told_to_stop_and_keeps_nothing(task, monkeypatch):
    """Else the next try of the cell would find there that it is to stop."""
    one, other = Double("a"), Double("b")

    other.files["coordinator"] = "0"
    other.start = lost
    with pytest.raises(PlaceLostError, match="no route"):
        carry_out(task, monkeypatch, one, other)
    assert "abort" in dict(one.order)
    assert other.order == []
    assert (one.files, other.files) == ({}, {})


def test_the_time_for_which_a_machine_is_out_of_reach_is_not_the_cell_s(task):
    one, other = Double("a"), Double("b")
    coordinating = coordinator(task, one, other)
    coordinating._started -= 100  # of the 60 that it may take
    other.away_s = lambda: 50.0
    coordinating._pause(0)
    other.away_s = lambda: 30.0
    with pytest.raises(BackendError, match="the cell was ended after 60 s"):
        coordinating._pause(0)


def test_a_machine_that_is_out_of_reach_for_long_is_the_place_lost(task, monkeypatch):
    one, other = Double("a"), Double("b")

    other.told = lost
    with pytest.raises(PlaceLostError, match="no route"):
        carry_out(task, monkeypatch, one, other)
    assert "abort" in dict(one.order)


def test_an_interrupt_stops_all_parts(task, monkeypatch):
    task.cancelled.set()
    one, other = Double("a"), Double("b")
    one.files.pop("ready.configure")
    with pytest.raises(CancelledError):
        carry_out(task, monkeypatch, one, other)
    assert "abort" in dict(one.order)
    assert "abort" in dict(other.order)


def test_a_machine_that_cannot_be_reached_is_named_before_anything_is_started(task):
    placement = {node.name: "nowhere" for node in task.job.nodes}
    with pytest.raises(BackendError, match="no way to machine nowhere"):
        machines.carry_out(task, several(placement), {})
