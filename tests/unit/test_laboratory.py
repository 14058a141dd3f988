"""Requests: what they plan, where they go, and what a run folder may take."""

import os
from pathlib import Path

import pytest
from places import GUEST

from fabbbr.errors import EnvironmentUnfitError, PlanError, SpecError, StoreError, UsageError
from fabbbr.laboratory import Request, carry_out, open_or_create, planned, run_folder_path, selected
from fabbbr.store import RunFolder

TEXT = """id: small
title: t
slice: two_site
path: {rate: 10 Mbit/s, rtt: 20 ms, loss: $loss}
flows: [{cca: cubic, duration: 1 s}]
vary: {loss: [1 %, 2 %]}
repeat: 2
"""


@pytest.fixture
def ask(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(TEXT, encoding="utf-8")

    def request(**more):
        return Request(**({"experiment": "./small.yaml", "out": tmp_path / "run"} | more))

    return request


@pytest.mark.parametrize(
    ("more", "folder"),
    [
        ({}, "runs/small"),
        ({"profile": "quick"}, "runs/small-quick"),
        ({"clock": "real"}, "runs/small-guest-real"),
        ({"backend": "mininet"}, "runs/small-mininet-real"),
        ({"backend": "mininet", "profile": "full"}, "runs/small-full-mininet-real"),
        ({"out": Path("mine")}, "mine"),
    ],
)  # fmt: skip
def test_runs_that_do_not_mix_have_folders_of_their_own(more, folder):
    assert run_folder_path(Request(**({"experiment": "small"} | more)), "small") == Path(folder)


def test_picking_cells_shortens_this_call_and_not_the_plan(ask):
    request = ask(only="loss=1%")
    plan = planned(request)
    assert len(plan.cells) == 4
    assert [cell.axes["loss"] for cell in selected(request, plan.cells)] == ["1 %", "1 %"]


def opened(request):
    return open_or_create(request, planned(request))


def test_a_folder_grows_by_repetitions_and_values_and_forgets_no_cell(ask):
    first = opened(ask())
    more = opened(ask(repeat=3))
    fewer = opened(ask(repeat=1, overrides=("loss=1 %,3 %",)))
    ids = [{cell.id for cell in folder.manifest.cells} for folder in (first, more, fewer)]
    assert ids[0] < ids[1] < ids[2]
    assert [len(each) for each in ids] == [4, 6, 7]


def test_a_run_that_is_continued_with_nothing_new_keeps_its_digest(ask, tmp_path):
    first = opened(ask())
    early = first.manifest.model_copy(update={"created": "2020-01-01T00:00:00+00:00"})
    before = RunFolder.create(tmp_path / "run", early, TEXT).stored.sha256
    assert opened(ask()).stored.sha256 == before


def test_nothing_is_added_to_a_folder_with_a_damaged_cell(ask, tmp_path):
    cell = opened(ask()).manifest.cells[0]
    (tmp_path / "run" / "cells" / cell.id).mkdir()
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(StoreError, match=f"{cell.id}.*remove what is named"):
        opened(ask(repeat=3))
    assert (tmp_path / "run" / "run.json").read_bytes() == before


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"seed": 2}, "seed 1 there, 2 asked"),
        ({"backend": "mininet"}, "backend guest there, mininet asked"),
        ({"clock": "real"}, "clock virtual there, real asked"),
        ({"overrides": ("path.rate=20 Mbit/s",)},
         r"cell loss=.*: links trunk bottleneck rate: 10 Mbit/s there, 20 Mbit/s asked; .*more cells?\)"),
        ({"overrides": ("flows.0.duration=7 s",)}, r"cell loss=.*: flows 0 duration: 1 s there, 7 s asked"),
    ],
)  # fmt: skip
def test_a_folder_refuses_what_would_mix_and_stays_as_it_was(ask, tmp_path, more, what):
    opened(ask())
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(StoreError, match=f"holds another run: {what}"):
        opened(ask(**more))
    assert (tmp_path / "run" / "run.json").read_bytes() == before


@pytest.mark.parametrize("jobs", [0, -1])
def test_less_than_one_cell_at_a_time_is_refused_before_anything_is_written(ask, tmp_path, jobs, monkeypatch):
    class Nowhere:
        testbed = GUEST

        def with_kernel(self, kernel):
            assert kernel is None
            return self.testbed

        def close(self):
            pass

    monkeypatch.setattr("fabbbr.laboratory.open_backend", lambda *_: Nowhere())
    with pytest.raises(UsageError, match="--jobs"):
        carry_out(ask(jobs=jobs), announce=lambda *_: None, listen=lambda _: None)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_tables_cannot_hold_is_refused(ask, seed):
    with pytest.raises(UsageError, match=f"--seed {seed}: give a whole number from 0 to"):
        planned(ask(seed=seed))
    assert planned(ask(seed=2**63 - 1)).cells


def test_mistakes_in_the_file_reach_the_caller_as_what_they_are(ask):
    with pytest.raises(SpecError, match="rate"):
        planned(ask(overrides=("path.rate=fast",)))
    with pytest.raises((PlanError, SpecError)):
        planned(ask(overrides=("path.buffer=1 B",)))


def test_a_umask_that_takes_the_users_own_rights_is_named_before_anything_is_written(
    ask, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    before = os.umask(0o777)
    try:
        with pytest.raises(EnvironmentUnfitError, match=r"umask 777 .* set umask 022"):
            carry_out(ask(), announce=lambda *_: None, listen=lambda _: None)
        assert os.umask(0o777) == 0o777
    finally:
        os.umask(before)
    assert not (tmp_path / "run").exists()


def test_a_run_folder_that_is_not_utf_8_is_refused(ask):
    with pytest.raises(UsageError, match="is not UTF-8, which tables need; choose another"):
        run_folder_path(ask(out=Path(os.fsdecode(b"run-\xff"))), "small")
