"""``fabbbr gate`` as a step of CI sees it: words, JSON and exit status."""

import json

import pytest
from recorded_run import cell, record, recorded, remove

from fabbbr import cli


def runs_of(path, *repetitions):
    """A run folder with two conditions, of which the second has these repetitions."""
    return recorded(path, cell(1), cell(2), *_other(*repetitions))


@pytest.fixture
def base(tmp_path):
    return runs_of(tmp_path / "base", 1, 2)


def test_a_run_as_good_as_its_base_passes(base, tmp_path, capsys):
    run = runs_of(tmp_path / "run", 1, 2)

    assert cli.main(["gate", str(base.path), "--against", str(run.path)]) == 0
    said = capsys.readouterr().out
    assert "show no change" in said
    assert "--repeat 5" in said


def test_a_run_with_too_few_certified_runs_of_a_condition_does_not_pass(tmp_path, capsys):
    three = [cell(r, id=f"third-r{r}", condition="third") for r in (1, 2)]
    base = recorded(tmp_path / "base", cell(1), cell(2), *three, *_other(1, 2))
    run = recorded(tmp_path / "run", cell(1), cell(2), *three, *_other(1, 2))
    remove(run, "other-r2")
    record(run, _other(2)[0], status="uncertified")

    assert cli.main(["gate", str(base.path), "--against", str(run.path)]) == 11
    said = capsys.readouterr()
    assert "missing  other: 1 certified runs, 2 in the base" in said.out
    assert "1 condition with fewer certified runs" in said.err
    # What only the new run has is no loss.
    assert cli.main(["gate", str(run.path), "--against", str(base.path)]) == 0


def _other(*repetitions):
    return [cell(r, id=f"other-r{r}", condition="other") for r in repetitions]


def test_a_gate_that_can_judge_nothing_does_not_pass(tmp_path, capsys):
    one = recorded(tmp_path / "one", cell(1), cell(2))

    assert cli.main(["gate", str(one.path), "--against", str(one.path)]) == 9
    assert "--repeat 5" in capsys.readouterr().err


def test_json_has_the_rows_and_how_many_stop(base, tmp_path, capsys):
    run = runs_of(tmp_path / "run", 1, 2)

    assert cli.main(["gate", str(base.path), "--against", str(run.path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["alarms"] == 0
    assert {row["metric"] for row in said["rows"]} >= {"goodput_bps", "rtt_median_s"}


@pytest.mark.parametrize("option", [["--budget", "0"], ["--budget", "5"], ["--tolerance", "-0.1"]])
def test_an_option_that_is_no_ratio_is_refused(base, option, capsys):
    assert cli.main(["gate", str(base.path), "--against", str(base.path), *option]) == 2
    assert option[0] in capsys.readouterr().err
