"""``fabbbr run`` and what follows it, from the shell: continue, grow, refuse, survive a damaged archive."""

import json
import shutil

import pytest
from guest.cells import experiment, fabbbr

from fabbbr import cli

pytestmark = pytest.mark.guest

TEXT = experiment(
    "grows",
    path="rate: 5 Mbit/s, rtt: 10 ms, buffer: 20 packets, loss: 1 %",
    flows="{cca: $cca, duration: 1 s}",
    more="vary: {cca: [cubic, bbr1]}",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grows")
    (folder / "grows.yaml").write_text(TEXT, encoding="utf-8")
    return folder


def run(place, *more):
    done = fabbbr("run", place / "grows.yaml", "--out", place / "run", "--no-report", "--json", *more)
    return done, json.loads(done.stdout) if done.stdout else None


@pytest.fixture(scope="module")
def grown(place):
    """What each of three calls did: one cell, the other one, and one more repetition."""
    return [run(place, *more)[1] for more in (("--only", "cca=bbr1"), (), ("--repeat", "2"))]


def test_a_run_continues_with_the_missing_cells_only(grown):
    assert (grown[0]["certified"], grown[0]["skipped"]) == (["cca=bbr1,r1"], [])
    assert (grown[1]["certified"], grown[1]["skipped"]) == (["cca=cubic,r1"], ["cca=bbr1,r1"])


def test_more_repetitions_are_added_to_those_there(grown):
    assert grown[2]["certified"] == ["cca=bbr1,r2", "cca=cubic,r2"]
    assert grown[2]["skipped"] == ["cca=bbr1,r1", "cca=cubic,r1"]


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (("--seed", "2"), "another run: seed 1 there, 2 asked"),
        (("--set", "path.rtt=20 ms"), "another run: cell cca="),
    ],
)  # fmt: skip
def test_a_run_folder_takes_no_cells_of_another_seed_or_another_condition(place, grown, more, what):
    before = (place / "run" / "run.json").read_bytes()
    done, _ = run(place, *more)
    assert done.returncode == 7
    assert what in done.stderr
    assert (place / "run" / "run.json").read_bytes() == before


def test_a_whole_run_verifies(place, grown):
    done = fabbbr("verify", place / "run", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["whole_cells"], told["problems"]) == (0, 4, [])


@pytest.fixture
def archive(place, grown, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(place / "run", copy)
    shutil.rmtree(copy / "tables", ignore_errors=True)
    return copy


def cut(file, share=0.5):
    text = file.read_bytes()
    file.write_bytes(text[: int(len(text) * share)])


CELL = "cells/cca=bbr1,r1"
DAMAGE = [
    "raw/flow-0.client.json", "raw/flow-0.server.json", "raw/sockets.h1.txt", "raw/sockets.h1.times",
    "raw/queues.s1.json", "raw/queues.s1.times", "raw/flows.json", "raw/counters.after.json",
]  # fmt: skip


@pytest.mark.parametrize("name", [*DAMAGE, "manifest.json", "run.json"])
@pytest.mark.parametrize("how", ["cut", "gone", "noise"])
def test_a_damaged_archive_is_named_by_verify_and_never_a_traceback(archive, monkeypatch, capsys, name, how):
    monkeypatch.setattr("signal.signal", lambda *_: None)
    file = archive / name if name == "run.json" else archive / CELL / name
    if how == "cut":
        cut(file)
    elif how == "gone":
        file.unlink()
    else:
        file.write_bytes(bytes(range(256)) * 4)
    assert cli.main(["verify", str(archive)]) == 7
    told = capsys.readouterr()
    assert name in told.out + told.err
    # Whatever escapes as another exception than fabbbr's own would reach the user as a traceback.
    assert cli.main(["claims", str(archive)]) in (0, 7, 8, 9)


def test_the_report_of_a_damaged_archive_names_the_file(archive):
    cut(archive / CELL / "raw/flow-0.client.json")
    (archive / CELL / "raw/sockets.h1.txt").write_bytes(bytes(range(256)))
    done = fabbbr("report", archive)
    assert done.returncode in (7, 8, 9)
    assert "cca=bbr1,r1" in done.stderr
    assert "Traceback" not in done.stderr
