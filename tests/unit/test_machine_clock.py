"""A machine whose clock is wrong or far ahead, and files older than zip files can say, or later than 2038."""

import datetime as dt
import os
import shutil

import pytest
import recorded_run

from fabbbr import cli, laboratory
from fabbbr.backends import machine
from fabbbr.laboratory import Request, open_or_create, planned
from fabbbr.store import RunFolder

INSTANTS = {
    "before 1970": -86_400,
    "1970": 0,
    "after 2038": 2**31 + 60,
    "after 2106": 2**32 + 60,
    "2242": 2**33,
}


@pytest.fixture(params=INSTANTS.values(), ids=INSTANTS)
def instant_s(request):
    return request.param


def all_of(folder):
    return [folder, *folder.rglob("*")]


def set_times(folder, instant_s):
    for path in all_of(folder):
        os.utime(path, (instant_s, instant_s))


def test_the_times_of_files_are_no_matter_to_a_run_folder(tmp_path, instant_s, capsys, monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *_: None)
    run = recorded_run.recorded(tmp_path / "run", recorded_run.cell(1), recorded_run.cell(2)).path
    set_times(run, instant_s)
    assert cli.main(["verify", str(run)]) == 0
    assert cli.main(["report", str(run), "--to", str(tmp_path / "page")]) == 0
    set_times(run, instant_s)  # the tables too
    assert cli.main(["report", str(run), "--to", str(tmp_path / "again")]) == 0
    assert capsys.readouterr().err == ""
    names = [path.name for path in sorted((tmp_path / "page").iterdir())]
    assert "report.html" in names
    for name in names:
        if (tmp_path / "page" / name).is_file():
            assert (tmp_path / "page" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_agent_is_packed_alike_whenever_its_files_were_written(tmp_path, instant_s, monkeypatch):
    packed = machine.archive()
    shutil.copytree(machine.AGENT, tmp_path / "agent")
    monkeypatch.setattr(machine, "AGENT", tmp_path / "agent")
    set_times(tmp_path / "agent", instant_s)
    assert machine.archive() == packed


def test_a_run_may_begin_and_go_on_at_any_time(tmp_path, instant_s, monkeypatch):
    began = dt.datetime.fromtimestamp(0, dt.timezone.utc) + dt.timedelta(seconds=instant_s)

    class Clock(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return began.astimezone(tz)

    monkeypatch.setattr(laboratory.dt, "datetime", Clock)
    request = Request(experiment="knit6_e1", profile="quick", repeat=1, out=tmp_path / "run")
    created = open_or_create(request, planned(request)).manifest.created
    assert created == began.isoformat(timespec="seconds")
    set_times(tmp_path / "run", instant_s)
    grown = Request(experiment="knit6_e1", profile="quick", repeat=2, out=tmp_path / "run")
    assert open_or_create(grown, planned(grown)).manifest.created == created
    assert RunFolder.open(tmp_path / "run").manifest.created == created
