"""benchmarks.mutants: modules that differ from fabbbr's BBRv3 in what their names say."""

import difflib

import pytest

from benchmarks import mutants
from fabbbr import sources
from fabbbr.backends.guest.kernel.edits import bbr


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_a_mutant_is_known_by_its_name_and_differs_in_one_line(tmp_path, name):
    mutants.write(tmp_path, name)
    (registered,) = sources.read(tmp_path / name).names
    assert registered.name == name
    (core,) = (file for file in bbr.sources() if file.name == "fab_bbr_core.c")
    ours, its = (
        file.read_text(encoding="utf-8").splitlines() for file in (core, tmp_path / name / core.name)
    )
    changed = [line for line in difflib.ndiff(ours, its) if line[0] in "+-"]
    assert [line[0] for line in changed] == ["-", "+"]
