"""Whatever a user varies and whatever comes of it: reports, figures, tables and comparisons are made.

``FABBBR_EXAMPLES=400 pytest tests/unit/test_any_experiment.py`` looks further.
"""

import os
import re
import tempfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import any_results
import yaml
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from fabbbr.errors import AnalysisError, FabbbrError
from fabbbr_analysis import regressions, summary
from fabbbr_analysis.answers import answer
from fabbbr_analysis.figures.catalogue import drawings, figure_names
from fabbbr_analysis.figures.conditions import axis_columns
from fabbbr_analysis.press.table import tabulate, tabulate_groups
from fabbbr_analysis.report import asked_differently, sentences, write_comparison, write_report

EXAMPLES = int(os.environ.get("FABBBR_EXAMPLES", "15"))

VALUES = {
    "cca": ["cubic", "reno", "bbr1", "bbr3"],
    "rate": ["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"],
    "rtt": ["10 ms", "40 ms", "80 ms"],
    "buffer": ["0.5 BDP", "100 packets", "64 kB"],
    "depth": ["20 kB", "2 BDP", "20 packets"],
    "aqm": ["codel", "fq_codel", "cake", "pie", "fq_pie"],
    "mtu": ["1500", "9000"],
    "loss": ["0 %", "0.1 %", "1 %"],
    "burst": ["1", "3", "10"],
    "overtaken": ["0 %", "1 %"],
    "late": ["0 ms", "5 ms", "60 ms"],
    "held": ["1 ms", "2 ms"],
    "duration": ["5 s", "9 s"],
    "size": ["100 kB", "1 MB"],
    "count": ["1", "2", "3"],
    "instant": ["2 s", "3 s"],
    "fall": ["1 Mbit/s", "2 Mbit/s"],
    "up": ["1 Mbit/s", "5 Mbit/s", "40 Mbit/s"],
}
"""Axis → values that it may have."""
PATH = {
    "rate": "rate",
    "rtt": "rtt",
    "buffer": "buffer",
    "burst": "depth",
    "aqm": "aqm",
    "mtu": "mtu",
    "ack_aggregation": "held",
    "reverse": "up",
}
"""Key → the axis that may give it its value."""
FLOW = {"cca": "cca", "duration": "duration", "count": "count"}
TRANSFER = {"cca": "cca", "size": "size", "count": "count"}
OTHERS = [
    {"udp": "100 kbit/s", "duration": "5 s", "label": "call"},
    {"ping": "100 ms"},
    {"video": {"bitrate": "1 Mbit/s"}, "cca": "cubic", "duration": "6 s", "label": "film"},
    {"cca": "bbr1", "duration": "4 s", "start": "3 s", "label": "late"},
    {"cca": "reno", "duration": "5 s", "label": "beside"},
    {"cca": "cubic", "duration": "6 s", "direction": "reverse", "label": "upload"},
]


class _Writer:
    """Draws an experiment file in which some axes vary and other keys have one of their values."""

    def __init__(self, draw):
        self.draw = draw
        self.varied = draw(st.sets(st.sampled_from(sorted(VALUES)), max_size=3))
        self.used = set()

    def value(self, axis):
        if axis not in self.varied:
            return self.draw(st.sampled_from(VALUES[axis]))
        self.used.add(axis)
        return f"${axis}"

    def some(self, keys, *always):
        chosen = self.draw(st.sets(st.sampled_from(sorted(keys)))) | set(always)
        chosen |= {key for key, axis in keys.items() if axis in self.varied}
        return {key: self.value(keys[key]) for key in sorted(chosen)}

    def whether(self, *axes):
        return bool(self.varied & set(axes)) or self.draw(st.booleans())

    def loss(self):
        if self.whether("burst"):
            return {"rate": self.value("loss"), "model": "bursts", "burst": self.value("burst")}
        return self.value("loss")

    def reordering(self):
        return {"rate": self.value("overtaken"), "late": self.value("late")}

    def flows(self):
        yield self.some(FLOW, "cca", "duration")
        yield from self.draw(st.lists(st.sampled_from(OTHERS), max_size=2, unique_by=str))
        if self.whether("size"):
            yield self.some(TRANSFER, "cca", "size")

    def vary(self):
        return {
            axis: self.draw(st.lists(st.sampled_from(VALUES[axis]), min_size=1, unique=True))
            for axis in sorted(self.used)
        }


@st.composite
def experiments(draw):
    """The text of an experiment file; some are refused."""
    writer = _Writer(draw)
    path = writer.some(PATH, "rate", "rtt")
    if writer.whether("loss", "burst"):
        path["loss"] = writer.loss()
    if writer.whether("overtaken", "late"):
        path["reordering"] = writer.reordering()
    asked = {
        "id": "mine",
        "title": "What I want to know",
        "slice": draw(st.sampled_from(["two_site", "dumbbell", "rtt_pair"])),
        "path": path,
        "flows": list(writer.flows()),
        "repeat": draw(st.integers(1, 3)),
    }
    if writer.whether("instant", "fall"):
        asked["steps"] = [{"at": writer.value("instant"), "rate": writer.value("fall")}]
    vary = writer.vary()
    return yaml.safe_dump(asked | ({"vary": vary} if vary else {}), sort_keys=False)


NOTHING = re.compile(r"\b(?:nan|NaN|None|inf|NaT|<NA>)\b")
"""What Python calls nothing, which a reader must not see."""
WRONG = re.compile(NOTHING.pattern + r"|\[\]|\{\}|  |\.\.|,,| [.,;]|^\s*$|[^.]$")
"""In a sentence: what stands for nothing, or was joined badly; or it has no end."""


some_experiments = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 2**32)


@contextmanager
def results(text, seed):
    """A run set, and a folder for what is made of it; a file that does not plan is passed over."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run_set = any_results.run_set(text, Path(folder), seed=seed)
        except FabbbrError:
            reject()
        yield run_set, Path(folder)


@some_experiments
@given(text=experiments(), seed=seeds)
def test_every_experiment_has_a_report_in_sentences(text, seed):
    with results(text, seed) as (run_set, folder):
        page = write_report([run_set], folder / "report")
        assert NOTHING.findall(page.with_suffix(".md").read_text(encoding="utf-8")) == []
        assert [each for each in answer(run_set).headline if WRONG.search(each)] == []


@some_experiments
@given(text=experiments(), seed=seeds)
def test_every_experiment_has_figures_tables_and_comparisons_or_says_why_not(text, seed):
    with results(text, seed) as (run_set, folder):
        assert set(figure_names(run_set)) == set(drawings(run_set))
        axes = [name.removeprefix("axis_") for name in axis_columns(run_set.certified)]
        made = [
            *(partial(printed, run_set, kind) for kind in ("latex", "markdown", "csv")),
            partial(tabulate_groups, run_set),
            partial(write_comparison, run_set, run_set, folder / "compared"),
            partial(regressions.find, run_set, run_set),
            *(partial(summary.compare_along, run_set, [axis]) for axis in axes),
        ]
        for make in made:
            with suppress(AnalysisError):
                make()


@some_experiments
@given(one=experiments(), other=experiments(), seed=seeds, again=seeds)
def test_any_two_runs_can_be_compared_or_it_is_said_why_not(one, other, seed, again):
    """Of one experiment twice, and of two: conditions that both have, and what differs between the files."""
    with results(one, seed) as (a, folder), results(one, again) as (b, _), results(other, again) as (c, _):
        for before, after in ((a, b), (a, c), (c, a)):
            with suppress(AnalysisError):
                write_comparison(before, after, folder / "compared")
                said = [*sentences(summary.compare(before, after)), *asked_differently(before, after)]
                assert [each for each in said if NOTHING.search(each)] == []
            with suppress(AnalysisError):
                regressions.find(before, after)


def printed(run_set, kind):
    return tabulate(run_set).written(kind)
