"""One machine that carries out a part: what it is told, what it tells, and what a lost connection does."""

import json
from contextlib import contextmanager
from itertools import pairwise

import pytest
from golden_cell import CELL
from places import GUEST

from fabbbr.backends.channel import ChannelError, CommandChannel
from fabbbr.backends.machine import Machine
from fabbbr.errors import BackendError
from fabbbr.job.build import prepare


class Way(CommandChannel):
    """One that can be lost: while it is, nothing begins there."""

    def __init__(self, folder):
        super().__init__(("env",), folder)
        self.lost = lambda: False
        self.begun = []
        self.standing = []

    def run(self, argv, *, stdin=b"", timeout_s=60.0):
        self._begin(argv)
        return super().run(argv, stdin=stdin, timeout_s=timeout_s)

    @contextmanager
    def conversation(self, argv, *, stderr=None):
        self._begin(argv)
        with super().conversation(argv, stderr=stderr) as process:
            self.standing.append(process)
            yield process

    def _begin(self, argv):
        self.begun.append(argv)
        if self.lost():
            message = "no route"
            raise ChannelError(message)

    def breaks(self):
        """What stands there ends, as with the connection."""
        for process in self.standing:
            process.kill()
            process.wait()

    def is_lost(self):
        self.lost = lambda: True
        self.breaks()

    def is_back(self):
        self.lost = lambda: False


@pytest.fixture
def way(tmp_path):
    return Way(str(tmp_path / "base"))


@pytest.fixture
def machine(way):
    machine = Machine("far", way, prepare(CELL, GUEST).job, "task")
    machine.put_agent()
    yield machine
    machine.hang_up()


def test_files_of_one_line_are_told_and_read_and_those_that_are_missing_are_left_out(machine):
    machine.tell("ready.pings", "1.5")
    machine.tell("ready.burst", '{"a": "with: colons"}')
    assert machine.told("ready.pings", "ready.burst", "ready.flows") == {
        "ready.pings": "1.5", "ready.burst": '{"a": "with: colons"}',
    }  # fmt: skip


def test_however_often_it_is_asked_one_process_answers(machine, way):
    """What is started beside the flows, hundreds of times in a cell, is in the way of what is measured."""
    machine.tell("alive", "1.0")
    before = len(way.begun)
    for number in range(50):
        machine.tell("coordinator", str(number))
        assert machine.told("coordinator") == {"coordinator": str(number)}
    machine.clock()
    assert len(way.begun) == before == 2
    machine.hang_up()
    assert [process.returncode for process in way.standing] == [0]


def test_a_process_that_is_gone_when_it_is_asked_is_started_again(machine, way):
    machine.tell("alive", "1.0")
    way.breaks()
    assert machine.told("alive") == {"alive": "1.0"}
    assert machine.away_s() == 0.0


def test_a_question_that_is_interrupted_leaves_no_answer_for_the_next(machine, monkeypatch):
    machine.tell("alive", "1.0")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fabbbr.backends.talk.select.select", interrupted)
        with pytest.raises(KeyboardInterrupt):
            machine.told("alive")
    machine.tell("abort", "interrupted")
    assert machine.told("abort") == {"abort": "interrupted"}


def test_what_cannot_be_written_there_is_an_error_that_names_machine_and_file(machine, tmp_path):
    machine.tell("alive", "1.0")
    (tmp_path / "base" / "task").rename(tmp_path / "base" / "elsewhere")
    with pytest.raises(BackendError, match=r"machine far: .*No such file.*go\.flows"):
        machine.tell("go.flows", "1.0")


def test_a_failed_part_is_an_error_that_names_machine_and_stage(machine):
    machine.tell(
        "outcome.json", json.dumps({"ok": False, "stage": "flows", "error": "late", "elapsed_s": 1.0})
    )
    with pytest.raises(BackendError, match="machine far: the agent failed at stage 'flows': late"):
        machine.told("ready.over")


def test_an_agent_that_no_longer_says_that_it_lives_is_an_error_that_names_the_machine(machine, monkeypatch):
    machine.tell("alive", "1.0")
    assert machine.told("ready.pings") == {}
    monkeypatch.setattr("fabbbr.backends.machine._SILENT_S", 0.0)
    with pytest.raises(BackendError, match="machine far: its agent has been silent"):
        machine.told("ready.pings")
    machine.tell("alive", "1.5")
    assert machine.told("ready.pings") == {}


def test_a_connection_that_is_lost_for_a_while_is_no_failure(machine, way, monkeypatch):
    machine.tell("alive", "1.0")
    assert machine.told("x") == {}
    monkeypatch.setattr("fabbbr.backends.machine._SILENT_S", 0.0)
    way.is_lost()
    assert machine.told("x") == {}
    way.is_back()
    machine.tell("alive", "1.5")
    assert machine.told("x") == {}
    way.is_lost()
    machine.lost_s = 0.0
    with pytest.raises(BackendError, match=r"machine far: .*no route"):
        machine.told("x")


def test_while_the_connection_is_lost_it_is_tried_less_and_less_often(machine, way, monkeypatch):
    """A bastion locks out who knocks every second."""
    now, tries = [1000.0], []

    def is_lost():
        tries.append(now[0])
        return True

    monkeypatch.setattr("fabbbr.backends.machine.time.monotonic", lambda: now[0])
    way.lost = is_lost
    machine._reached = now[0]
    while now[0] < 1000.0 + machine.lost_s:
        assert machine.told("x") == {}
        now[0] += 0.5
    gaps = [after - before for before, after in pairwise(tries)]
    assert gaps == sorted(gaps)
    assert len(tries) < 24
    now[0] += 16.0
    with pytest.raises(BackendError, match="no route"):
        machine.told("x")


@pytest.mark.parametrize("asked", ["told", "tell"])
def test_the_time_without_a_connection_is_counted_apart(machine, way, monkeypatch, asked):
    now = [1000.0]

    def later(seconds):
        now[0] += seconds

    monkeypatch.setattr("fabbbr.backends.machine.time.monotonic", lambda: now[0])
    monkeypatch.setattr("fabbbr.backends.machine.time.sleep", later)
    way.lost = lambda: 1010.0 <= now[0] < 1030.0
    machine.told("x")
    later(10.0)
    way.breaks()
    if asked == "tell":
        machine.tell("x", "1")
    else:
        assert (machine.told("x"), machine.away_s()) == ({}, 0.0)
        later(20.0)
        assert machine.away_s() == 20.0
        machine.told("x")
    assert machine.away_s() == now[0] - 1010.0 >= 20.0
    away_s = machine.away_s()
    later(5.0)
    machine.told("x")
    assert machine.away_s() == away_s


def test_who_says_that_it_lives_waits_for_no_machine_that_is_lost(machine, way, monkeypatch):
    machine.beat("1.5")
    assert machine.told("coordinator") == {"coordinator": "1.5"}

    way.is_lost()
    monkeypatch.setattr("fabbbr.backends.machine.time.sleep", lambda _: pytest.fail("it waits"))
    with pytest.raises(ChannelError, match=r"machine far: no route"):
        machine.beat("2.5")


def test_what_is_said_while_the_connection_is_lost_is_said_again_until_it_arrives(machine, way, monkeypatch):
    tries = []

    def twice():
        tries.append(1)
        return len(tries) < 3

    monkeypatch.setattr("fabbbr.backends.machine._AGAIN_S", 0.0)
    way.lost = twice
    machine.tell("go.flows", "17.5")
    assert len(tries) == 3
    assert machine.told("go.flows") == {"go.flows": "17.5"}


def test_raw_files_come_over_and_one_that_differs_from_its_digest_is_refused(machine, tmp_path):
    raw = tmp_path / "base" / "task" / "raw"
    raw.mkdir(parents=True)
    (raw / "flows.json").write_text("[]")
    machine.tell("agent.log", "its words")
    empty = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    machine.tell("outcome.json", json.dumps({"ok": True, "elapsed_s": 2.5, "files": {"flows.json": empty}}))
    (tmp_path / "to").mkdir()
    assert machine.fetch(tmp_path / "to") == 2.5
    assert (tmp_path / "to" / "flows.json").read_text() == "[]"
    assert (tmp_path / "to" / "console.log").read_text() == "its words\n"
    (raw / "flows.json").write_text("[0]")
    with pytest.raises(BackendError, match=r"machine far: flows\.json came over damaged"):
        machine.fetch(tmp_path / "to")
    machine.forget()
    assert not raw.parent.exists()


def test_a_way_that_fails_by_itself_is_not_taken_for_a_machine_that_says_nothing(tmp_path):
    words = ("sh", "-c", "echo no route to far >&2; exit 255")
    machine = Machine("far", CommandChannel(words, str(tmp_path)), prepare(CELL, GUEST).job, "task")
    machine.lost_s = 0.0
    with pytest.raises(BackendError, match=r"machine far: .*no route to far"):
        machine.told("x")
