"""A process that spins stops the guest's clock, and is noticed by that: not by the agent's silence."""

import threading

import pytest
from guest.cells import experiment

from fabbbr.backends import guest
from fabbbr.backends.base import Task
from fabbbr.backends.registry import open_backend
from fabbbr.errors import GuestError
from fabbbr.job.build import prepare
from fabbbr.plan.opening import open_plan

pytestmark = pytest.mark.guest

WALL_LIMIT_S = 100
SPIN = "while True: pass"
LOOK = "import time; end = time.monotonic() + 0.2\nwhile time.monotonic() < end: pass"
SPINS = r"its clock has stood for (\d+) s of wall time, so a process inside it spins"

ASIDE = r"(; \d+ s for which others had its CPU are not counted)?"
"""On a machine with more to do than it has CPUs."""


@pytest.fixture(scope="module")
def backend():
    opened = open_backend("guest", None)
    yield opened
    opened.close()


def carry_out(folder, backend, code, *, last=False):
    """A cell whose first or last flow is replaced by a Python process of this ``code``; its progress."""
    file = folder / "spins.yaml"
    flows = "{cca: cubic, duration: 3 s}, {cca: cubic, duration: 3 s, start: 2.5 s}"
    file.write_text(experiment("spins", path="rate: 5 Mbit/s, rtt: 10 ms", flows=flows), encoding="utf-8")
    (cell,) = open_plan(str(file), seed=1).cells
    job = prepare(cell, backend.testbed).job
    flows = list(job.flows)
    flows[-last] = flows[-last].model_copy(update={"client_argv": ("python3", "-c", code)})
    (folder / "work" / "raw").mkdir(parents=True)
    told = []
    backend.execute(
        Task(
            job=job.model_copy(update={"flows": tuple(flows)}),
            work=folder / "work", seed=1, wall_limit_s=WALL_LIMIT_S,
            cancelled=threading.Event(), progress=told.append,
        )
    )  # fmt: skip
    return told


@pytest.mark.parametrize("last", [False, True], ids=["the first flow", "a later flow"])
def test_a_process_that_never_sleeps_ends_the_cell_by_its_clock_within_ten_seconds(backend, tmp_path, last):
    """The limits are those of every run; the agent may be silent for longer than this test may take."""
    assert guest._STALL_LIMIT_S > WALL_LIMIT_S
    with pytest.raises(GuestError, match=SPINS) as ended:
        carry_out(tmp_path, backend, SPIN, last=last)
    assert ended.match(rf"spins{ASIDE} \(see raw/console.log\)$")
    assert guest._SPIN_LIMIT_S + 2 * guest._START_S < 10


def test_a_process_that_waits_by_looking_at_the_clock_gets_on(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(guest, "_SPIN_LIMIT_S", 3.0)
    assert carry_out(tmp_path, backend, LOOK)[-1] >= 2
