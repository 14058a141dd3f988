"""The loop over cells, with a stand-in backend: what is kept, put aside, skipped and tried again."""

import errno
import threading
from types import SimpleNamespace

import pytest
from places import GUEST, place
from synthetic import CARDWELL_F10, run_set

from fabbbr import bundled
from fabbbr import execute as loop
from fabbbr.backends.base import CancelledError, Report
from fabbbr.errors import BackendError, EnvironmentUnfitError, GuestError, PlaceLostError, StoreError
from fabbbr.execute import execute
from fabbbr.job.build import prepare
from fabbbr.manifest import Certificate, Check
from fabbbr.physics import end_of
from fabbbr.plan.opening import open_plan
from fabbbr.store import RunFolder

CELLS = 6


class StandIn:
    """Leaves one raw file per cell, unless asked to do something else with it."""

    def __init__(self, act=lambda task: None):
        self.act = act
        self.seeds = []
        self.at_once = self.most = 0
        self.lock = threading.Lock()

    testbed = GUEST

    def with_kernel(self, kernel):
        assert kernel is None
        return self.testbed

    def execute(self, task):
        with self.lock:
            self.seeds.append(task.seed)
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        try:
            (task.work / "raw" / "file").write_text(str(task.seed), encoding="utf-8")
            task.progress(1.0)
            self.act(task)
        finally:
            with self.lock:
                self.at_once -= 1
        return Report(wall_s=0.5, clock_s=2.0)

    def close(self):
        pass


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "run"
    return run_set(CARDWELL_F10, path).manifest


@pytest.fixture
def folder(manifest, tmp_path, monkeypatch):
    passing = Certificate(checks=(Check(name="rate", passed=True, asked="1", measured="1"),))
    nothing = SimpleNamespace(readback={})
    monkeypatch.setattr(loop.Evidence, "read", classmethod(lambda *_: nothing))
    monkeypatch.setattr(loop, "certify", lambda *_, **__: passing)
    return RunFolder.create(tmp_path / "run", manifest, "id: x\n")


def run(folder, backend, cells=None, jobs=1, listen=lambda _: None):
    return execute(folder, cells or folder.manifest.cells[:CELLS], backend, jobs=jobs, listen=listen)


def ids(folder):
    return [cell.id for cell in folder.manifest.cells[:CELLS]]


def test_every_cell_is_kept_with_its_own_seed_and_hashed_files(folder):
    backend = StandIn()
    summary = run(folder, backend)
    assert sorted(summary.certified) == sorted(ids(folder))
    assert backend.seeds == [cell.seed for cell in folder.manifest.cells[:CELLS]]
    for stored in folder.cells():
        assert stored.damage() == []
        assert stored.raw("file").read_text(encoding="utf-8") == str(stored.manifest.cell.seed)
    assert not folder.partial.exists()


def test_cells_that_are_there_are_never_run_again(folder):
    run(folder, StandIn(), cells=folder.manifest.cells[:2])
    backend = StandIn()
    summary = run(folder, backend)
    assert sorted(summary.skipped) == sorted(ids(folder)[:2])
    assert len(backend.seeds) == CELLS - 2


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_no_more_cells_run_at_once_than_asked(folder, jobs):
    together = threading.Barrier(jobs)
    backend = StandIn(lambda _: together.wait(timeout=10))
    run(folder, backend, jobs=jobs)
    assert backend.most == jobs


@pytest.mark.parametrize("error", [BackendError("the tool broke"), GuestError("the guest died")])
def test_a_broken_cell_is_put_aside_with_its_reason_and_the_others_go_on(folder, error):
    bad = folder.manifest.cells[1]

    def act(task):
        if task.seed == bad.seed:
            raise error

    summary = run(folder, StandIn(act))
    assert summary.failed == {bad.id: str(error)}
    assert len(summary.certified) == CELLS - 1
    aside = folder.path / "failed" / bad.id
    assert (aside / "reason.txt").read_text(encoding="utf-8") == f"{error}\n"
    assert (aside / "raw" / "file").exists()
    assert not folder.has(bad.id)
    again = run(folder, StandIn())
    assert again.certified == [bad.id]


def test_a_cell_that_is_not_certified_is_kept_with_what_was_wrong(folder, monkeypatch):
    wrong = Certificate(checks=(Check(name="rate", passed=False, asked="10", measured="9"),))
    monkeypatch.setattr(loop, "certify", lambda *_, **__: wrong)
    summary = run(folder, StandIn(), cells=folder.manifest.cells[:1])
    assert summary.uncertified == {folder.manifest.cells[0].id: "rate: 9 (asked: 10)"}
    (stored,) = folder.cells()
    assert (stored.manifest.status, stored.manifest.reason) == ("uncertified", "rate: 9 (asked: 10)")


LOSSY_LOT = """
id: lot
title: Loss on three hops of four
slice: {name: parking_lot, hops: 4}
path: {rate: 10 Mbit/s, rtt: 20 ms, buffer: 1 BDP, loss: 1 %}
links: {hop3: {loss: 0 %}}
flows: [{cca: cubic, duration: 2 s}]
repeat: 2
"""


def test_an_injected_loss_is_judged_as_one_of_all_that_the_run_injects(folder, tmp_path, monkeypatch):
    file = tmp_path / "lot.yaml"
    file.write_text(LOSSY_LOT, encoding="utf-8")
    cells = open_plan(str(file), seed=1).cells
    lot = RunFolder.create(tmp_path / "lot", folder.manifest.model_copy(update={"cells": cells}), LOSSY_LOT)
    passing, said = loop.certify(), []
    monkeypatch.setattr(loop, "certify", lambda *_, **judged: said.append(judged) or passing)
    run(lot, StandIn(), cells=cells)
    assert said == [{"lossy_links": 6}] * 2


def test_a_full_disk_stops_the_run_and_keeps_what_is_whole(folder):
    full = folder.manifest.cells[2]

    def act(task):
        if task.seed == full.seed:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StoreError, match="No space left on device; free some space"):
        run(folder, StandIn(act))
    # How many of the cells after it were begun before the stop is a matter of threads; none is half there.
    assert {cell.id for cell in folder.cells()} >= set(ids(folder)[:2])
    assert not folder.has(full.id)
    assert not folder.partial.exists()


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (
            OSError(errno.EMFILE, "x", "/a/file"),
            EnvironmentUnfitError,
            r"Too many open files \(/a/file\); raise ulimit -n",
        ),
        (
            BlockingIOError(errno.EAGAIN, "x"),
            EnvironmentUnfitError,
            "unavailable; no more processes .* raise ulimit -u",
        ),
        (MemoryError(), EnvironmentUnfitError, "Cannot allocate memory; end other programs, or lower --jobs"),
        (OSError(errno.EIO, "x"), StoreError, "Input/output error; the disk or its driver is at fault"),
        (PermissionError(errno.EACCES, "not allowed"), StoreError, "not allowed; choose another --out"),
    ],
)
def test_what_the_system_refuses_a_cell_ends_the_run_with_its_place_and_remedy(folder, error, kind, said):
    def act(task):
        raise error

    with pytest.raises(kind, match=said) as refused:
        run(folder, StandIn(act))
    assert any(cell.id in str(refused.value) for cell in folder.manifest.cells), (
        "whichever of two at a time came first"
    )
    assert list(folder.cells()) == []
    assert not folder.partial.exists()


def test_no_thread_for_a_cell_ends_the_run_with_its_remedy(folder, monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    backend = StandIn()
    with pytest.raises(EnvironmentUnfitError, match="can't start new thread: raise ulimit -u"):
        run(folder, backend)
    assert backend.seeds == []


def test_an_interrupt_stops_every_cell_and_leaves_none_half_done(folder):
    begun = threading.Barrier(3)

    def act(task):
        begun.wait(timeout=10)
        assert task.cancelled.wait(10)
        raise CancelledError

    def interrupt(event):
        if event.kind == "progress":
            return

    backend = StandIn(act)

    def press_ctrl_c():
        begun.wait(timeout=10)
        import _thread

        _thread.interrupt_main()

    pressing = threading.Thread(target=press_ctrl_c)
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        run(folder, backend, jobs=2, listen=interrupt)
    pressing.join()
    assert list(folder.cells()) == []
    assert not folder.partial.exists()
    assert not (folder.path / "failed").exists()
    assert len(backend.seeds) == 2


def test_events_tell_of_every_cell_its_start_progress_and_end(folder):
    events = []
    run(folder, StandIn(), listen=events.append)
    for cell in folder.manifest.cells[:CELLS]:
        assert [event.kind for event in events if event.cell.id == cell.id] == [
            "started",
            "progress",
            "certified",
        ]


def test_what_an_earlier_run_left_half_done_is_swept_away(folder):
    (folder.partial / "old" / "raw").mkdir(parents=True)
    run(folder, StandIn(), cells=folder.manifest.cells[:1])
    assert not folder.partial.exists()


@pytest.mark.parametrize("name", sorted(bundled.names("experiments")))
def test_every_bundled_experiment_could_finish_in_real_time(name):
    """Its flows, and a minute for boot, set-up and probes."""
    for cell in {one.condition: one for one in open_plan(name, seed=1).cells}.values():
        flows_s = end_of(cell.flows, cell.links).seconds
        assert loop.wall_limit_s(prepare(cell, place("real"))) >= flows_s + 60


def test_a_guest_in_virtual_time_is_not_waited_for_as_long_as_its_flows_last():
    (cell, *_) = open_plan("cardwell_f12", seed=1).cells
    assert loop.wall_limit_s(prepare(cell, GUEST)) < end_of(cell.flows, cell.links).seconds


def test_where_the_place_is_lost_no_other_cell_is_tried_and_the_next_run_does_them_all(folder):
    def lost(task):
        if len(backend.seeds) > 2:
            message = "machine h2: no route"
            raise PlaceLostError(message)

    backend = StandIn(lost)
    told = []
    summary = run(folder, backend, listen=lambda event: told.append(event.kind))
    assert (len(summary.certified), list(summary.failed.values())) == (2, ["machine h2: no route"])
    assert len(summary.untried) == CELLS - 3
    assert len(backend.seeds) == told.count("started") == 3
    again = run(folder, StandIn())
    assert (len(again.certified), len(again.skipped), again.untried) == (CELLS - 2, 2, [])
