"""From a name to a plan: bundled experiments, files of one's own, and what is missing."""

import re
import shutil
from pathlib import Path

import pytest

from fabbbr import bundled
from fabbbr.errors import FabbbrError, SpecError, UsageError
from fabbbr.plan import opening
from fabbbr.trust import Trust

MINE = """\
id: mine
title: My own
slice: ./lot.py
path: {trace: lte.up, rtt: 40 ms, buffer: 50 kB}
flows: [{cca: cubic, duration: 1 s}]
repeat: 1
"""


@pytest.fixture
def mine(tmp_path):
    shutil.copy(bundled.folder("slices") / "two_site.py", tmp_path / "lot.py")
    (tmp_path / "lot.py").write_text((tmp_path / "lot.py").read_text().replace("def two_site", "def lot"))
    (tmp_path / "lte.up").write_text("1\n100\n")
    (tmp_path / "mine.yaml").write_text(MINE)
    return tmp_path / "mine.yaml"


def test_slices_and_traces_are_looked_for_beside_the_experiment(mine):
    planned = opening.open_plan(str(mine), seed=1, trust=Trust(anything=True))
    assert planned.text == MINE
    assert planned.source_name == str(mine)
    assert planned.experiment.id == "mine"
    assert [cell.id for cell in planned.cells] == ["r1"]
    assert planned.cells[0].bottleneck.rate.bps == 240_000


def test_repeat_and_overrides_reach_the_plan(mine):
    planned = opening.open_plan(
        str(mine), seed=1, repeat=3, overrides=["path.mtu=9000"], trust=Trust(anything=True)
    )
    assert [cell.mtu_bytes for cell in planned.cells] == [9000] * 3


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("cardwel_f10", UsageError, "no experiment 'cardwel_f10'; did you mean 'cardwell_f10'?"),
        (
            "./nowhere.yaml",
            UsageError,
            "no experiment file nowhere.yaml; give an existing file, or a bundled name: c",
        ),
        ("nowhere.yml", UsageError, "no experiment file nowhere.yml"),
    ],
)
def test_an_unknown_experiment_is_refused_and_what_exists_is_listed(name, kind, said):
    with pytest.raises(kind, match=re.escape(said)):
        opening.open_plan(name, seed=1)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("mine.yaml", b"id: \xff\xfe", "byte 4 is not UTF-8; save the file as UTF-8"),
        ("mine.yaml", b"id: 1 2: 3", "mine.yaml:1: column 8: not YAML"),
        ("lte.up", b"1\nfast\n", "lte.up:2: 'fast' is not a whole number"),
        ("lte.up", None, "lte.up: No such file or directory"),
        ("lot.py", None, "no slice file"),
    ],
)
def test_a_damaged_file_is_refused_by_its_name(mine, file, content, said):
    path = mine.parent / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SpecError, match=re.escape(said)):
        opening.open_plan(str(mine), seed=1, trust=Trust(anything=True))


def test_a_folder_is_no_experiment(tmp_path):
    with pytest.raises(FabbbrError):
        opening.open_plan(f"{tmp_path}/", seed=1)


def test_the_wheels_copy_is_used_where_there_is_no_checkout(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "fabbbr"
    inside = package / "_bundled" / "experiments"
    inside.mkdir(parents=True)
    (inside / "other.yaml").write_text("")
    monkeypatch.setattr(bundled, "__file__", str(package / "bundled.py"))
    assert bundled.names("experiments") == ("other",)
    assert bundled.find("experiments", "other") == inside / "other.yaml"


def test_every_kind_of_bundled_thing_is_in_the_checkout():
    root = Path(bundled.__file__).resolve().parent.parent
    for kind in ("experiments", "slices", "playbooks"):
        assert bundled.folder(kind) == root / kind
