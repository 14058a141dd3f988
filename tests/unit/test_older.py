"""Folders of older formats: what they say is read as what it was."""

import json
from pathlib import Path

import pytest
import recorded_run
from older_shape import as_in_format_2

from fabbbr import seal
from fabbbr.errors import StoreError
from fabbbr.store import RunFolder
from fabbbr.units import Rate

FORMAT_2 = Path(__file__).parents[1] / "golden" / "format-2"


def test_a_folder_that_format_2_wrote_is_read_as_what_it_was():
    """Written by the last fabbbr of format 2; its raw files are not kept here."""
    folder = RunFolder.open(FORMAT_2)
    manifest = folder.cell("r1").manifest
    assert (manifest.format_version, manifest.status) == (2, "certified")
    (machine,) = manifest.provenance.testbed.machines.values()
    said = json.loads((FORMAT_2 / "cells" / "r1" / "manifest.json").read_text(encoding="utf-8"))
    told = said["provenance"]
    assert (machine.kernel.release, machine.kernel.sha256) == (told["kernel_release"], told["kernel_sha256"])
    assert (machine.kernel.timer_hz, machine.tools) == (said["cell"]["timer_hz"], told["tools"])
    assert manifest.provenance.testbed.clock == told["clock"] == "virtual"
    assert [link.name for link in manifest.cell.links if link.bottleneck] == ["trunk"]
    assert manifest.cell.bottleneck.rate == Rate.parse("5 Mbit/s")
    assert manifest.cell.bottleneck.buffer_bytes == said["cell"]["links"][1]["buffer_bytes"]
    assert manifest.cell.trunk.loss is not None


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_what_was_written_before_equals_what_is_written_today(tmp_path, clock):
    folder = recorded_run.create(tmp_path / "run", recorded_run.cell(), backend="guest", clock=clock)
    recorded_run.record(folder, recorded_run.cell(), clock=clock, backend="guest")
    today = RunFolder.open(folder.path)
    wanted = (
        today.manifest.cells,
        next(today.cells()).manifest.cell,
        next(today.cells()).manifest.provenance,
    )
    for file in (folder.path / "run.json", *folder.path.glob("cells/*/manifest.json")):
        older = as_in_format_2(json.loads(file.read_text(encoding="utf-8")))
        file.write_text(seal.sealed(json.dumps(older, indent=1)), encoding="utf-8")
    before = RunFolder.open(folder.path)
    found = next(before.cells()).manifest
    assert before.manifest.cells == wanted[0]
    assert found.cell == wanted[1]
    assert found.provenance.testbed.tolerances == wanted[2].testbed.tolerances
    assert [each.kernel for each in found.provenance.testbed.machines.values()] == [
        each.kernel for each in wanted[2].testbed.machines.values()
    ]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda said: said["cell"].pop("timer_hz"),
        lambda said: said["cell"].pop("links"),
        lambda said: said["cell"].update(links=[5]),
        lambda said: said["provenance"].pop("clock"),
        lambda said: said.update(provenance=[]),
        lambda said: said["provenance"].update(kernel_release=None),
    ],
)
def test_an_older_manifest_that_is_not_whole_is_refused_by_name(tmp_path, spoil):
    file = tmp_path / "run" / "cells" / "r1" / "manifest.json"
    file.parent.mkdir(parents=True)
    (tmp_path / "run" / "run.json").write_bytes((FORMAT_2 / "run.json").read_bytes())
    said = json.loads((FORMAT_2 / "cells" / "r1" / "manifest.json").read_text(encoding="utf-8"))
    del said["digest"]
    spoil(said)
    file.write_text(seal.sealed(json.dumps(said, indent=1)), encoding="utf-8")
    with pytest.raises(StoreError, match=r"manifest\.json is damaged or was edited"):
        RunFolder.open(tmp_path / "run").cell("r1")
