"""Programs in the style of FABRIC's example notebooks, by fablib's documentation; they check themselves."""

import pytest

PROGRAMS = ("hello", "bridge", "fabnet", "wide_area", "post_boot", "renew", "modify", "smart_nic", "many")


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_of_a_notebook_runs_unmodified(sandbox, program):
    outcome = sandbox(program)
    assert outcome.status == 0
    assert outcome.events("internal error") == []
    assert outcome.events("ground refused") == []
    assert outcome.events("node failed") == []
