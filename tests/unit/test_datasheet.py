"""The datasheet: who is ahead where, and that what it asks for is what its experiments give."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fabbbr import bundled, cli
from fabbbr.arguments import build_parser
from fabbbr.commands.datasheet import _Datasheet
from fabbbr.commands.terminal import Terminal
from fabbbr.laboratory import planned
from fabbbr.plan.opening import open_plan
from fabbbr_analysis.datasheet import EXPERIMENTS, sheet, write_datasheet
from fabbbr_analysis.datasheet.asked import PANELS
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.tables.columns import GROUPS

FOLDER = bundled.folder("experiments") / "datasheet"
AIMD = Path(__file__).resolve().parents[2] / "examples" / "tcp_aimd"
LOSSES = ("0.1 %", "1 %")


def loss_runs(values, repeat=5, spread=0.01):
    """A run set of the experiment ``loss``: congestion control → its share of the link at each loss."""
    generator = np.random.default_rng(1)
    rows = [
        {
            "cell_id": f"{cca},{loss},r{r}",
            "condition": f"{cca},{loss}",
            "repetition": r,
            "status": "certified",
            "ccas": cca,
            "axis_cca": cca,
            "axis_loss": loss,
            "loss_ratio": float(loss.split()[0]) / 100,
            "utilisation": value * (1 + spread * generator.standard_normal()),
        }
        for cca, shares in values.items()
        for loss, value in zip(LOSSES, shares, strict=True)
        for r in range(1, repeat + 1)
    ]
    return RunSet.from_frames({"runs": pd.DataFrame(rows)}, experiment="datasheet_loss")


def change_runs(rtts, recoveries):
    """A run set of the experiment ``change``: congestion control → RTT after the fall, and recovery [s]."""
    runs, groups = [], []
    for cca, rtt_s in rtts.items():
        for r in range(1, 4):
            cell = f"{cca},r{r}"
            runs.append(
                {"cell_id": cell, "condition": cca, "status": "certified", "ccas": cca, "axis_cca": cca}
            )
            for phase, begins in enumerate(("start", "start", "warm-up", "step", "step")):
                groups.append(
                    dict.fromkeys(GROUPS.names)
                    | {"cell_id": cell, "group": "it", "phase": phase, "begins_with": begins, "n_flows": 1}
                    | {"rtt_p95_s": rtt_s * (1 + r / 100) if phase == 3 else 9.0}
                    | {"recovery_s": recoveries[cca] + r / 100 if phase == 4 else 9.0}
                )
    frames = {"runs": pd.DataFrame(runs), "groups": pd.DataFrame(groups)}
    return RunSet.from_frames(frames, experiment="datasheet_change")


def test_the_place_where_it_is_behind_is_named_with_the_best_of_its_rivals():
    runs = loss_runs({"bbr3": (0.9, 0.3), "cubic": (0.5, 0.1), "bbr1": (0.8, 0.88)})

    found = sheet("bbr3", ("cubic", "bbr1"), {"loss": runs})

    assert [contest.verdict for contest in found.contests] == ["ahead", "behind"]
    (worst,) = found.worst
    assert (worst.where, worst.rival.cca) == ("Random loss, 1 %", "bbr1")
    assert worst.times == pytest.approx(0.88 / 0.3, rel=0.05)
    assert "ahead of the better of cubic and bbr1 in 1 of 2 cells, behind in 1" in found.headline


def test_runs_that_do_not_tell_are_no_verdict():
    found = sheet(
        "bbr3", ("cubic",), {"loss": loss_runs({"bbr3": (0.8, 0.8), "cubic": (0.81, 0.79)}, spread=0.2)}
    )

    assert {contest.verdict for contest in found.contests} == {"level"}
    assert not found.worst


def test_of_steps_the_first_and_the_last_are_asked_and_less_is_better():
    runs = change_runs({"bbr3": 0.05, "cubic": 0.12}, {"bbr3": 2.0, "cubic": 0.5})

    found = sheet("bbr3", ("cubic",), {"change": runs})

    assert {c.panel.asked.title: c.verdict for c in found.contests} == {
        "After the rate fell": "ahead",
        "Rate rises: link full after": "behind",
    }


def test_a_cell_of_which_a_run_lacks_the_quantity_has_no_mean():
    runs = loss_runs({"bbr3": (0.9, 0.3), "cubic": (0.5, 0.1)})
    frame = runs.runs
    frame.loc[frame["condition"] == "bbr3,1 %", "utilisation"] = [0.3, 0.3, np.nan, 0.3, 0.3]

    found = sheet("bbr3", ("cubic",), {"loss": RunSet.from_frames({"runs": frame}, experiment="x")})

    assert found.panels[0].at("bbr3", "1 %") is None
    assert len(found.contests) == 1


def test_cells_that_are_not_certified_are_counted_and_left_out():
    runs = loss_runs({"bbr3": (0.9, 0.9), "cubic": (0.5, 0.5)})
    frame = runs.runs.assign(status=["uncertified", *["certified"] * 19])

    found = sheet("bbr3", ("cubic",), {"loss": RunSet.from_frames({"runs": frame}, experiment="x")})

    assert found.panels[0].uncertified == 1
    assert found.panels[0].at("bbr3", "0.1 %").mean.n == 4


def test_panels_whose_experiment_was_not_run_are_named():
    found = sheet("bbr3", ("cubic",), {"loss": loss_runs({"bbr3": (0.9, 0.3), "cubic": (0.5, 0.1)})})

    assert "Start-up" in found.missing
    assert "Random loss" not in found.missing


def test_the_same_runs_give_the_same_bytes_in_every_form(tmp_path):
    runs = {"loss": loss_runs({"bbr3": (0.9, 0.3), "cubic": (0.5, 0.6)})}
    for name in ("one", "two"):
        write_datasheet("bbr3", ("cubic",), runs, tmp_path / name, facts={"seed": "1"})

    for suffix in ("html", "pdf", "md", "json"):
        first, second = ((tmp_path / name / f"datasheet.{suffix}").read_bytes() for name in ("one", "two"))
        assert first == second
    page = (tmp_path / "one" / "datasheet.html").read_text()
    assert "Random loss, 1 %" in page
    assert "<script" not in page


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_asked_is_what_the_experiments_give(name):
    cells = {
        profile: open_plan(str(FOLDER / f"{name}.yaml"), profile=profile, seed=1).cells
        for profile in ("quick", "default")
    }

    for profile in cells.values():
        groups = {flow.group for cell in profile for flow in cell.flows}
        axes = {axis for cell in profile for axis in cell.axes}
        for asked in (panel for panel in PANELS if panel.experiment == name):
            assert {"cca", asked.axis, *asked.held} - {""} <= axes
            assert not asked.group or (asked.group in groups and asked.column in GROUPS.names)
            held = {key: {cell.axes[key] for cell in profile} for key in asked.held}
            assert all(asked.held[key] in held[key] for key in held)
            steps = {len({step.at for step in cell.steps}) for cell in profile}
            assert "step" not in asked.phase or steps == {2}


def test_every_experiment_of_the_folder_has_a_panel():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(EXPERIMENTS)


@pytest.mark.parametrize("against", [",", "", "bbr3", "bbr3,bbr3"])
def test_a_datasheet_without_a_rival_is_refused_before_anything_runs(against, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["datasheet", "bbr3", "--against", against]) == 2
    assert "no rival of bbr3" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_one_of_ones_own_runs_in_every_experiment_beside_its_rivals():
    """``fabbbr datasheet aimd --cca aimd=./tcp_aimd``: from its sources to its page."""
    words = ["datasheet", "aimd", "--cca", f"aimd={AIMD}", "--against", "cubic"]
    asked = _Datasheet(build_parser().parse_args(words), Terminal())
    for name in EXPERIMENTS:
        cells = planned(asked.request(name)).cells
        run = {flow.cca: flow.module for cell in cells for flow in cell.flows}
        assert run["aimd"].kernel_name == "aimd", name
        assert run["cubic"] is None
