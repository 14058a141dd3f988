"""Figures on paper: the numbers of the report, the same bytes anywhere, letters that a printer has."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import synthetic
from matplotlib.container import ErrorbarContainer
from plotly.subplots import make_subplots

from fabbbr.commands.figure import length_in
from fabbbr.errors import AnalysisError, StoreError, UsageError
from fabbbr_analysis.figures import catalogue
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.press import ink, latex, paper
from fabbbr_analysis.press.caption import of_figure
from fabbbr_analysis.press.chart import read
from fabbbr_analysis.press.paper import Framing
from fabbbr_analysis.press.table import tabulate_groups
from fabbbr_analysis.press.write import file_names, format_of, write_all, write_figure
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.summary import summarise


def on_paper(figure, **sheet):
    with mpl.rc_context(ink.SETTINGS):
        drawn = paper.drawn(read(figure), Framing(**sheet))
        drawn.canvas.draw()
        return drawn


# The same numbers


def drawn_by_plotly(figure):
    """Sorted (name, x, y) of every trace of points; what stands on an axis of names by its name."""
    found = []
    for trace in figure.data:
        if trace.type == "scatter":
            x, y = ([_number(each) for each in side] for side in (trace.x, trace.y))
            found.append((trace.name, *(_around(x, y) if trace.fill else (x, y))))
    return sorted(found)


def _around(x, y):
    """The points around an area, without the one that closes it."""
    closed = (x[0], y[0]) == (x[-1], y[-1])
    return (x[:-1], y[:-1]) if closed else (x, y)


def _number(value):
    return value if isinstance(value, str) else round(float("nan" if value is None else value), 9)


def drawn_on_paper(figure):
    found = []
    for axes in figure.axes:
        names = [text.get_text() for text in axes.get_xticklabels()]
        is_named = isinstance(axes.xaxis.get_major_locator(), mpl.ticker.FixedLocator) and all(
            re.search("[a-z]", name) for name in names
        )
        for line in axes.get_lines():
            if str(line.get_label()).startswith(("_nolegend_", "_child")):  # caps of bars, marked lines
                continue
            x, y = line.get_data(orig=True)
            found.append(
                (
                    str(line.get_label()).removeprefix("_"),
                    [names[int(each)] if is_named else _number(each) for each in x],
                    [_number(each) for each in y],
                )
            )
        for area in axes.patches:
            x, y = ([_number(each) for each in side] for side in area.get_xy().T)
            found.append((str(area.get_label()).removeprefix("_"), *_around(x, y)))
    return sorted(found)


@pytest.mark.parametrize("kind", ["f10", "e1"])
def test_every_figure_has_on_paper_the_points_that_the_report_draws(kind, request):
    run_set = request.getfixturevalue(kind)
    for name, drawing in catalogue.drawings(run_set, 200).items():
        figure = drawing.draw()
        theirs = [
            (re.sub(", published.*", ", published", trace_name), x, y)
            for trace_name, x, y in drawn_by_plotly(figure)
        ]
        assert drawn_on_paper(on_paper(figure)) == sorted(theirs), name


def test_the_bars_on_paper_are_the_intervals_of_the_summary(f10):
    drawn = on_paper(catalogue.figure(f10, "goodput_by_loss"))
    summary = summarise(f10.runs, ["goodput_bps"])
    ends = {
        (round(low, 6), round(high, 6))
        for container in drawn.axes[0].containers
        if isinstance(container, ErrorbarContainer)
        for bars in container[2]
        for (_, low), (_, high) in bars.get_segments()
    }
    wanted = {(round(row.low * 1e-6, 6), round(row.high * 1e-6, 6)) for row in summary.itertuples()}
    assert ends == wanted


def fund_runs():
    conditions = itertools.product(("cubic", "bbr1"), (102_400,), (50e6, 250e6), (0.005, 0.05, 0.2), (1, 2))
    rows = [
        {
            "cell_id": str(number), "condition": str(number // 2), "status": "certified", "ccas": cca,
            "buffer_bytes": float(buffer), "rate_bps": rate, "rtt_s": rtt,
            "goodput_bps": rate / (2 if cca == "cubic" else 1.5 - rtt) * repetition,
        }
        for number, (cca, buffer, rate, rtt, repetition) in enumerate(conditions)
    ]  # fmt: skip
    return RunSet.from_frames({"runs": pd.DataFrame(rows)}, experiment="fund2023")


def test_a_heat_map_on_paper_has_the_numbers_of_the_report_in_its_cells():
    from fabbbr_analysis.figures import grid

    beside = grid.find(fund_runs())
    figure = grid.heat_maps(beside, beside.panels[0])
    drawn = on_paper(figure)
    for trace, axes in zip(figure.data, drawn.axes, strict=False):
        (mesh,) = axes.collections
        assert mesh.get_array().reshape(np.shape(trace.z)).filled(np.nan) == pytest.approx(
            np.array(trace.z, dtype=float), nan_ok=True
        )
        said = {text.get_text().replace("−", "-") for text in axes.texts}
        assert said == {f"{value:.1f}" for row in trace.z for value in row if value is not None}
    assert [axes.get_title() for axes in drawn.axes[: len(figure.data)]] == [
        note.text for note in figure.layout.annotations
    ]


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (go.Figure(go.Pie(values=[1, 2])), "'pie'"),
        (go.Figure(layout={"shapes": [{"type": "rect", "x0": 0, "x1": 1}]}), "a rect"),
        (go.Figure(layout={"annotations": [{"text": "here", "x": 1, "y": 1, "xref": "x"}]}), "'here'"),
    ],
)
def test_what_has_no_form_on_paper_is_refused_and_not_left_out(figure, said):
    with pytest.raises(AnalysisError, match=said):
        read(figure)


def test_an_instant_is_marked_in_every_row_and_named_above_the_first():
    figure = make_subplots(rows=3, cols=1, shared_xaxes=True)
    for row in (1, 2, 3):
        figure.add_scatter(x=[0, 9], y=[row, row], row=row, col=1)
    figure.add_shape(type="line", x0=3, x1=3, y0=0, y1=1, xref="x", yref="paper", line={"dash": "dot"})
    figure.add_annotation(x=3, y=1, xref="x", yref="paper", text="rate 20 Mbit/s", showarrow=False)
    drawn = on_paper(figure)
    for axes in drawn.axes:
        assert [3, 3] in [list(line.get_xdata()) for line in axes.get_lines()]
    assert [[text.get_text() for text in axes.texts] for axes in drawn.axes] == [["rate 20 Mbit/s"], [], []]


# The same bytes

WRITE = """
import sys
sys.path[:0] = ["tests", "analysis"]
import synthetic
from pathlib import Path
from fabbbr_analysis.press.write import write_figure
from fabbbr_analysis.press.paper import Framing
folder = Path(sys.argv[1])
run_set = synthetic.run_set(synthetic.SMALL_E1, folder / "run", period_s=1.0)
for kind in ("pdf", "svg", "png"):
    write_figure(run_set, "overview_by_rtt", folder / f"a.{kind}", Framing())
"""


def test_another_process_folder_home_zone_and_taste_give_the_same_bytes(tmp_path):
    files = []
    for place in ("one", "two"):
        folder, home = tmp_path / place, tmp_path / f"home-{place}"
        folder.mkdir()
        (home / ".config/matplotlib").mkdir(parents=True)
        (home / "tmp").mkdir()
        environment = {
            **os.environ, "HOME": str(home), "TMPDIR": str(home / "tmp"), "PYTHONPATH": "tests/unit",
            "TZ": "UTC" if place == "one" else "Pacific/Auckland", "SOURCE_DATE_EPOCH": str(len(files)),
        }  # fmt: skip
        environment.pop("MPLCONFIGDIR", None)
        environment.pop("XDG_CONFIG_HOME", None)
        if place == "two":
            taste = "font.size: 20\nlines.linewidth: 9\naxes.facecolor: red\n"
            (home / ".config/matplotlib/matplotlibrc").write_text(taste)
        subprocess.run([sys.executable, "-c", WRITE, folder], env=environment, check=True)
        files.append({path.name: path.read_bytes() for path in folder.glob("a.*")})
    assert set(files[0]) == {"a.pdf", "a.svg", "a.png"}
    assert files[0] == files[1]


# What a printer needs


def test_fonts_are_in_the_file_as_truetype(e1, tmp_path):
    write_figure(e1, "goodput_by_rtt", tmp_path / "a.pdf", Framing())
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/CIDFontType2" in content
    assert content.count(b"/FontFile2") == content.count(b"/FontDescriptor /") >= 1
    assert b"/Type3" not in content


def test_the_picture_is_as_wide_as_asked(e1, tmp_path):
    write_figure(e1, "goodput_by_rtt", tmp_path / "a.pdf", Framing(width_in=7.0, height_in=2.5))
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/MediaBox [ 0 0 504 180 ]" in content


def test_a_grey_printer_tells_the_congestion_controls_of_the_papers_apart():
    palette = Palette.of([])
    names = ("cubic", "bbr1", "bbr2", "reno", "htcp", "bbr3")
    greys = sorted(ink.lightness(ink.printed(palette[name].colour)) for name in names)
    # 8 in L* is more than three times what a reader sees between patches that touch (about 2.3).
    assert min(np.diff(greys)) >= 8
    assert greys[-1] < 80  # still to be seen on white


def test_bare_lines_of_several_colours_differ_by_their_dash_and_keep_it_in_every_row(f10):
    drawn = on_paper(catalogue.figure(f10, "over_time[loss=0.1%]"))
    dashes = {
        (line.get_color(), line._unscaled_dash_pattern) for axes in drawn.axes for line in axes.get_lines()
    }
    assert (
        len({colour for colour, _ in dashes}) == len({repr(dash) for _, dash in dashes}) == len(dashes) == 2
    )


def test_a_letter_that_no_font_has_is_refused(e1, tmp_path):
    with pytest.raises(AnalysisError, match="use another"):
        write_figure(e1, "goodput_by_rtt", tmp_path / "a.pdf", Framing(title="\U0001f680"))
    assert not list(tmp_path.iterdir())


def test_a_dollar_or_a_backslash_in_a_title_is_text(e1, tmp_path):
    write_figure(e1, "goodput_by_rtt", tmp_path / "a.svg", Framing(title=r"$\badcommand{ costs 5 $"))
    drawn = on_paper(catalogue.figure(e1, "goodput_by_rtt"), title=r"$\badcommand{ costs 5 $")
    words = drawn.legends[0].get_title()
    less = drawn.text(0, 0, "badcommand{ costs 5", fontproperties=words.get_fontproperties())
    # Every letter is there: a formula would swallow dollars and commands.
    assert words.get_window_extent().width > less.get_window_extent().width


# Files


def test_a_caption_lies_beside_the_figure_as_text_and_as_latex_that_includes_it(f10, tmp_path):
    written = write_figure(f10, "goodput_by_loss", tmp_path / "a.pdf", Framing(), with_caption=True)
    assert [path.name for path in written] == ["a.pdf", "a.txt", "a.tex"]
    text, source = (path.read_text() for path in written[1:])
    assert "95 % intervals" in text
    assert "2 to 3 runs" in text
    assert "Student's t" in text
    assert "1 run not certified and not averaged" in text
    assert r"\includegraphics{a.pdf}" in source
    assert "%" not in re.sub(r"\\%|^%.*$", "", source, flags=re.MULTILINE)
    assert source.startswith("%")


def test_a_wide_figure_stands_across_both_columns(f10, tmp_path):
    write_figure(f10, "goodput_by_loss", tmp_path / "a.pdf", Framing(width_in=7.0), with_caption=True)
    assert r"\begin{figure*}" in (tmp_path / "a.tex").read_text()


def test_a_metric_that_piles_up_at_its_bound_names_the_bootstrap(f10):
    assert "bootstrap" in of_figure(f10, catalogue.drawing(f10, "queue_by_loss"))


def test_a_single_run_says_that_there_is_no_interval(f10):
    one = f10.only([each for each in f10.runs["cell_id"] if each.endswith("r1")])
    assert "A mean is of 1 run, so there are no intervals" in of_figure(
        one, catalogue.drawing(one, "goodput_by_loss")
    )


def test_all_figures_lie_beside_a_page_with_a_thumbnail_of_each(e1, tmp_path):
    index = write_all(e1, tmp_path / "all", Framing(), kind="svg")
    page = index.read_text()
    for source in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert (tmp_path / "all" / source).is_file()
    shown = re.findall(r"<figcaption><code>([^<]+)</code>", page)
    drawings = catalogue.drawings(e1)
    assert shown == [name for name in drawings if not read(drawings[name].draw()).empty]
    assert "goodput_by_rtt" in shown


def test_an_unknown_name_is_answered_by_the_nearest(f10, tmp_path):
    with pytest.raises(AnalysisError, match="did you mean 'goodput_by_loss'"):
        write_figure(f10, "goodput_by_los", tmp_path / "a.pdf", Framing())


def test_a_missing_folder_is_named_and_not_made(f10, tmp_path):
    with pytest.raises(StoreError, match="no folder"):
        write_figure(f10, "goodput_by_loss", tmp_path / "not/there/a.pdf", Framing())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.eps", "a", "a.pdf.gz"])
def test_a_suffix_that_is_not_known_is_refused(name, tmp_path):
    with pytest.raises(UsageError, match=r"\.pdf, \.svg or \.png"):
        format_of(tmp_path / name)


def test_file_names_are_one_for_each_figure():
    names = dict.fromkeys(["a[x 1 %]", "a[x=1 %]", "a-x-1-pct", "b"])
    assert len(set(file_names(names).values())) == len(names)


@pytest.mark.parametrize(
    ("text", "inches"), [("3.3in", 3.3), ("84 mm", 84 / 25.4), ("252pt", 252 / 72.27), ("page", 7.0)]
)
def test_a_length_has_a_unit_of_print(text, inches):
    assert length_in(text) == pytest.approx(inches)


@pytest.mark.parametrize("text", ["3", "3px", "-3in", "nan", "0.1in", "3000mm", ""])
def test_a_length_without_one_or_beyond_a_page_is_refused(text):
    with pytest.raises(UsageError):
        length_in(text)


# A part of a run


def test_a_part_of_a_run_has_its_own_rows_and_the_identity_of_the_whole(f10):
    chosen = [each for each in f10.runs["cell_id"] if "loss=15%" in each]
    part = f10.only(chosen)
    for frame in (part.cells, part.runs, part.flows, part.intervals, part.sockets(), part.queues()):
        assert set(frame["cell_id"]) == set(chosen)
    assert part.manifest == f10.manifest
    assert set(part.sockets(cell_ids=[chosen[0], "cca=cubic,loss=0.1%,r1"])["cell_id"]) == {chosen[0]}


def test_published_panels_of_other_values_do_not_lie_over_a_part():
    """kfoury_5_4 was published at three buffers; runs of one of them lie beside its own panel alone."""
    from fabbbr_analysis.figures import published
    from fabbbr_analysis.figures.conditions import varied
    from fabbbr_analysis.figures.measures import BY_COLUMN

    rows = [
        {
            "cell_id": f"{cca}{loss}", "condition": f"{cca}{loss}", "status": "certified", "ccas": cca,
            "axis_buffer": "1 BDP", "axis_loss": f"{loss} %", "loss_ratio": loss / 100, "rate_bps": 1e9,
            "goodput_bps": 5e8,
        }
        for cca in ("bbr1", "cubic") for loss in (0.1, 1.0)
    ]  # fmt: skip
    run_set = RunSet.from_frames({"runs": pd.DataFrame(rows)}, experiment="kfoury_5_4")
    (axis,) = varied(run_set.runs)
    found = published.find(run_set, BY_COLUMN["goodput_bps"], axis, {})
    assert {label.split(" (")[0] for label in found.series["label"]} == {
        f"{cca}, 1 BDP" for cca in ("bbr1", "bbr2", "cubic")
    }


# LaTeX


@pytest.mark.parametrize(
    "text", ["a_b & c % d # e $ f { g } h \\ i ~ j ^ k", "5 < 6 > 4 | x", "10 µs × 2 ≤ 3 …"]
)
def test_no_letter_of_a_text_is_a_command(text):
    source = latex.escaped(text)
    bare = re.sub(r"\\[a-z]+\{[^}]*\}|\\[a-z]+|\\[&%$#_{},]|\$[^$]*\$", "", source)
    assert not set(bare) & set("&%$#_{}\\^<>|")


def test_a_table_of_groups_without_a_certified_run_is_refused(f10):
    """It once ended in a KeyError."""
    none = synthetic.changed(f10, runs=f10.runs.assign(status="uncertified"))
    with pytest.raises(
        AnalysisError, match="no certified run of cardwell_f10 has groups of flows to tabulate"
    ):
        tabulate_groups(none)
