"""Tables, captions and references of a paper: what they say is what was measured, and LaTeX takes it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml

from fabbbr import cli
from fabbbr.errors import AnalysisError, StoreError, UsageError
from fabbbr.version import __version__
from fabbbr_analysis.answers import answer
from fabbbr_analysis.press import caption
from fabbbr_analysis.press.cite import SOFTWARE_TITLE, bibtex
from fabbbr_analysis.press.paper import Framing
from fabbbr_analysis.press.table import tabulate, tabulate_groups
from fabbbr_analysis.press.write import write_figure
from fabbbr_analysis.references.bibliography import _SAID, cited, entries
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.summary import summarise

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def inspected(f10):
    """The same run, opened as a folder is: with what was found there, and so a digest."""
    from fabbbr.inspection import inspect
    from fabbbr.store import RunFolder

    whole = f10.only(list(f10.cells["cell_id"]))
    whole.found = inspect(RunFolder.open(f10.path), raw_files=False)
    return whole


# Tables


def test_a_table_has_the_means_and_intervals_of_the_summary_in_base_units(f10):
    table = tabulate(f10, ["goodput", "rtt_median_s"])
    pd.testing.assert_frame_equal(table.summary, summarise(f10.runs, ["goodput_bps", "rtt_median_s"]))


def test_every_form_of_a_table_has_every_condition(f10):
    table = tabulate(f10, ["goodput"])
    for kind, lines in {"latex": 6, "markdown": 6, "csv": 6}.items():
        text = table.written(kind)
        assert len(re.findall(r"\b(?:bbr1|cubic)\b.*\d", text.split("midrule")[-1])) >= lines


def test_latex_shows_the_mean_in_the_unit_of_its_head(f10):
    table = tabulate(f10, ["goodput"])
    mean = table.summary.set_index("condition").loc["cca=bbr1,loss=0.1%", "mean"]
    (row,) = re.findall(r"0\.1 \\% & bbr1 & (\S+)", table.written("latex"))
    assert float(row) == pytest.approx(mean * 1e-6, rel=1e-2)
    assert r"\shortstack[r]{\strut Goodput\\\strut (Mbit/s)}" in table.written("latex")


def test_a_table_wider_than_a_column_goes_across_both(f10):
    assert r"\begin{table}" in tabulate(f10, ["goodput"]).written("latex")
    assert r"\begin{table*}" in tabulate(f10, ["goodput", "rtt", "retransmit_ratio"]).written("latex")


def test_conditions_of_different_counts_have_a_column_of_runs(f10):
    latex = tabulate(f10, ["goodput"]).written("latex")
    counts = [int(line.split("&")[-1].strip(" \\")) for line in latex.splitlines() if "footnotesize" in line]
    assert sorted(counts) == [2, 3, 3, 3, 3, 3]


def test_the_caption_says_what_the_intervals_are_and_of_which_run(inspected):
    told = tabulate(inspected, ["goodput"]).caption
    for said in (
        "95 % intervals", "2 to 3 runs", "Student's t", "1 run not certified", "propagation RTT 100\u00a0ms",
        "cardwell_f10", f"seed {inspected.manifest.seed}", inspected.found.digest[:16],
    ):  # fmt: skip
        assert said in told


def test_a_table_of_groups_has_the_means_of_the_answer_and_a_row_for_each(f10):
    table = tabulate_groups(f10, ["goodput_per_flow", "rtt"])
    rows = answer(f10).rows
    assert len(table.shown.rows) == len(rows) == 6
    for row in rows:
        here = table.summary[
            (table.summary["condition"] == row.condition) & (table.summary["group"] == row.group)
        ]
        told = here.set_index("metric")["mean"]
        assert told.to_dict() == {
            column: row.mean(column) for column in ("goodput_per_flow_bps", "rtt_median_s")
        }
    assert [len(row.values) for row in table.shown.rows] == [2] * 6
    assert len(table.shown.values) == 2


def test_a_metric_that_groups_do_not_have_is_answered_by_the_nearest(f10):
    with pytest.raises(UsageError, match="did you mean 'retransmit_ratio'"):
        tabulate_groups(f10, ["retransmits_ratio"])


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((3, 3), "A mean is of 3 runs, intervals over runs by Student's t."),
        ((2, 3), "A mean is of 2 to 3 runs, intervals over runs by Student's t."),
        ((1, 1), "A mean is of 1 run, so there are no intervals."),
        (
            (1, 3),
            (
                "A mean is of 1 to 3 runs, intervals over runs by Student's t. "
                "Repetitions in which nothing differed are one run."
            ),
        ),
        ((0, 0), ""),
    ],
)
def test_a_caption_says_over_how_many_runs_a_mean_is(counts, said):
    conditions = [f"c{n}" for n in range(len(counts))]
    summary = pd.DataFrame({"condition": conditions, "n": counts, "method": "t", "excluded": 0})
    assert caption.counts(summary) == said


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        (["t", "t, cut"], "Student's t (cut where the quantity ends)"),
        (["t, cut", "expanded percentile"],
         "Student's t (cut where the quantity ends) and the bootstrap (expanded percentiles)"),
        (["t", "t, cut", "expanded percentile"],
         "Student's t (cut where the quantity ends) and the bootstrap (expanded percentiles)"),
    ],
)  # fmt: skip
def test_a_caption_names_each_way_to_an_interval_once(methods, said):
    conditions = [f"c{n}" for n in range(len(methods))]
    summary = pd.DataFrame({"condition": conditions, "n": 3, "method": methods, "excluded": 0})
    assert caption.counts(summary) == f"A mean is of 3 runs, intervals over runs by {said}."


def test_an_unknown_metric_is_answered_by_the_nearest(f10):
    with pytest.raises(UsageError, match="did you mean 'goodput'"):
        tabulate(f10, ["godput"])


def test_a_metric_that_no_run_has_is_refused(f10):
    with pytest.raises(AnalysisError, match="completion"):
        tabulate(f10, ["completion"])


# References


def test_a_run_is_cited_by_its_whole_digest_and_with_its_paper(inspected):
    text = bibtex(inspected)
    assert text.count("sha256 = {" + inspected.found.digest + "}") == 1
    assert re.sub(r"\\allowbreak ", "", text).count(inspected.found.digest) == 2
    assert f"@misc{{run-cardwell-f10-{inspected.found.digest[:8]}," in text
    assert "@article{cardwell2016bbr," in text
    assert f"@misc{{fabbbr-{inspected.manifest.fabbbr_version}," in text


def test_a_run_without_a_digest_cannot_be_cited(f10):
    with pytest.raises(StoreError, match="verify"):
        bibtex(f10)


def test_every_bundled_experiment_after_a_paper_cites_it():
    """Drafts of the IETF are no papers; everything else that is named has an entry."""
    for path in (ROOT / "experiments").glob("*.yaml"):
        source = str(yaml.safe_load(path.read_text()).get("source", ""))
        if re.search(r"\b20\d\d\b", source):
            assert cited(source), path.name


def test_every_entry_is_whole_and_has_a_name_in_experiment_files():
    assert set(entries()) == set(_SAID)
    for entry in entries().values():
        assert entry.count("{") == entry.count("}")
        assert {"author", "title", "year"} <= set(re.findall(r"^  (\w+) = \{", entry, flags=re.MULTILINE))


def test_the_citation_file_says_the_same_as_the_package():
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert said["title"] == SOFTWARE_TITLE
    assert said["version"] == __version__


# The command line


@pytest.fixture
def run_folder(f10, monkeypatch):
    monkeypatch.setattr(RunSet, "open", lambda path, **_: f10)
    return str(f10.path)


def test_figures_are_listed_and_named_in_json(run_folder, capsys):
    assert cli.main(["figure", run_folder, "--json"]) == 0
    names = [each["name"] for each in json.loads(capsys.readouterr().out)]
    assert names[0] == "goodput_by_loss"


def test_where_picks_conditions_as_only_does(run_folder, tmp_path, capsys):
    assert cli.main(["table", run_folder, "--where", "loss=0.001", "--format", "csv"]) == 0
    assert {line.split(",")[1:3][1] for line in capsys.readouterr().out.splitlines()[1:]} == {'loss=0.1%"'}


def test_where_of_a_value_that_was_not_run_is_refused(run_folder, capsys):
    assert cli.main(["figure", run_folder, "--where", "loss=3%"]) == 2
    assert "axis loss has no value '3%'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["goodput_by_loss", "--to", "a.eps"], "a figure is a .pdf, .svg or .png"),
        (["--to", "a.pdf"], "which figure?"),
        (["goodput_by_loss", "--all", "x"], "--all writes every figure"),
        (["goodput_by_loss", "--format", "svg"], "--format is for --all"),
        (["goodput_by_loss", "--width", "3"], "no length"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(run_folder, words, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["figure", run_folder, *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_table_takes_its_form_from_the_suffix(run_folder, tmp_path, capsys):
    assert cli.main(["table", run_folder, "--to", str(tmp_path / "t.tex")]) == 0
    assert "booktabs" in (tmp_path / "t.tex").read_text()
    assert cli.main(["table", run_folder, "--to", str(tmp_path / "t.doc")]) == 2
    assert ".tex, .md or .csv" in capsys.readouterr().err


def test_json_of_a_table_has_absent_values_as_null(run_folder, capsys):
    assert cli.main(["table", run_folder, "--json", "--where", "cca=cubic,loss=0.1%"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["n"] for row in rows} == {2}


# A page


PAGE = r"""
\documentclass[twocolumn]{article}
\usepackage{graphicx,booktabs}
\begin{document}
A column.\cite{KEY}
\input{figure.tex}
\input{table.tex}
\bibliographystyle{plain}
\bibliography{run}
\end{document}
"""


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs LaTeX: apt install texlive-latex-recommended"
)
def test_latex_sets_a_page_with_a_figure_a_table_and_a_reference(inspected, tmp_path):
    write_figure(inspected, "goodput_by_loss", tmp_path / "figure.pdf", Framing(), with_caption=True)
    (tmp_path / "table.tex").write_text(tabulate(inspected, ["goodput"]).written("latex"))
    source = bibtex(inspected)
    (tmp_path / "run.bib").write_text(source)
    (key,) = re.findall(r"@misc\{(run-[^,]+),", source)
    (tmp_path / "page.tex").write_text(PAGE.replace("KEY", key))
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    for command in (latex, ["bibtex", "page"], latex, latex):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "page.log").read_text()
    assert "undefined" not in log
    assert not re.findall(r"Overfull \\hbox \(([1-9]\d+)", log)
