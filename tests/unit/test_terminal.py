"""What users, files and tools say is printed as is: no markup, nothing steers the terminal or is lost."""

import ast
import contextlib
import json
import os
import re
import types
from pathlib import Path

import pandas as pd
import pytest
from places import GUEST
from rich.progress import Progress, TextColumn
from rich.table import Table

from fabbbr import cli, commands
from fabbbr.commands import display as run_display
from fabbbr.commands import doctor, results
from fabbbr.commands.doctor import Finding
from fabbbr.commands.terminal import Terminal
from fabbbr.execute import Event, Summary
from fabbbr.laboratory import Request, open_or_create, planned
from fabbbr_analysis import report

MARKUP = [
    "[/s]",
    "[/x]",
    "[bold]loud",
    "[red]",
    "[link=file:///etc]x[/link]",
    ":smile:",
    "\\[/]",
    "[/]",
    "[[/s]]",
]
STEERING = ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x07", "\x08", "\r", "\udcff", "\u202e"]
FILE = (
    "id: small\ntitle: {title}\nslice: two_site\npath: {{rate: 10 Mbit/s, rtt: 40 "
    "ms}}\nflows: [{{cca: cubic, duration: 9 s}}]\nrepeat: 1\n"
)
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")


@pytest.fixture
def fabbbr(capsys, monkeypatch):
    """Run a command in this process: its exit status and all that it printed."""
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def call(*words):
        try:
            status = cli.main([str(word) for word in words])
        except SystemExit as left:
            status = left.code
        told = capsys.readouterr()
        return status, told.out + told.err

    return call


@pytest.mark.parametrize("text", MARKUP)
def test_markup_is_text(capsys, text):
    Terminal().say(text, (text, "red"), f" {text}")
    assert capsys.readouterr().out == f"{text}{text} {text}\n"


@pytest.mark.parametrize("text", STEERING, ids=ascii)
def test_what_would_steer_a_terminal_is_spelt_out(capsys, text):
    console, table = Terminal(width=200), Table(text)
    table.add_row(f"a{text}b")
    console.say(f"a{text}b", (f"a{text}b", "red"))
    console.print(table, f"a{text}b")
    console.rule(f"a{text}b")
    with Progress(TextColumn("{task.description}", markup=False), console=console) as bar:
        bar.add_task(f"a{text}b", total=1)
    told = capsys.readouterr().out
    assert not CONTROL.search(told), ascii(told)
    assert told.count(f"a{ascii(text)[1:-1]}b") >= 5


def test_no_other_room_prints_with_rich():
    """A console of its own would obey markup again."""
    for file in sorted(Path(commands.__file__).parent.glob("*.py")):
        if file.name == "terminal.py":
            continue
        imported = {
            f"{node.module}.{name.name}"
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        assert not {"rich.console.Console", "rich.markup.escape", "rich.print"} & imported, file


@contextlib.contextmanager
def announced(folder, title="t"):
    """The display of a run that is about to begin, and its only cell."""
    file = folder / "e.yaml"
    file.write_text(FILE.format(title=json.dumps(title)), encoding="utf-8")
    request = Request(experiment=str(file), out=folder / "out")
    plan = planned(request)
    with run_display.Display(Terminal()) as display:
        display.announce(open_or_create(request, plan), plan.cells, 1, GUEST)
        yield display, plan.cells[0]


@pytest.mark.parametrize("title", [*MARKUP, "a [/s] b", "100 % [sic]"])
def test_a_title_is_announced_as_it_stands(capsys, tmp_path, title):
    with announced(tmp_path, title=title):
        pass
    assert capsys.readouterr().out.startswith(f"{title}: 1 of 1 cells to run")


@pytest.mark.parametrize("text", [*MARKUP, *STEERING], ids=ascii)
def test_the_reason_of_a_failed_cell_is_printed_as_the_tool_said_it(capsys, tmp_path, text):
    with announced(tmp_path) as (display, cell):
        capsys.readouterr()
        display.listen(Event(kind="started", cell=cell))
        display.listen(Event(kind="failed", cell=cell, reason=f"tc said {text}"))
        run_display.print_outcome(Terminal(), Summary(failed={cell.id: text}))
        told = capsys.readouterr().out
    spelt = text if text in MARKUP else ascii(text)[1:-1]
    assert told == f"failed r1: tc said {spelt}\ncells: 0 certified, 1 failed\n"


@pytest.mark.parametrize(
    "name", ["[x]", "[red]", ":smile:", "a\x1b[31mb", "a\x07b", os.fsdecode(b"a\xffb")], ids=ascii
)
def test_a_path_is_printed_as_it_is_called_by_every_command(fabbbr, tmp_path, name):
    spelt = ascii(name)[1:-1] if CONTROL.search(name) else name
    place = tmp_path / name
    place.mkdir()
    (place / "e.yaml").write_text(FILE.format(title="t").replace("9 s", "9 sec"), encoding="utf-8")
    calls = [
        (3, "plan", place / "e.yaml"),
        (3, "run", place / "e.yaml"),
        (2, "plan", place / "none.yaml"),
        (0, "experiments", "copy", "cardwell_f10", "--to", place / "copy.yaml"),
        (2, "experiments", "copy", "cardwell_f10", "--to", place / "copy.yaml"),
        (7, "verify", place / "none"),
        (7, "claims", place / "none"),
        (7, "compare", place / "none", place / "none"),
        (7, "report", place / "none"),
        (2, "rnu", place),
        (2, "plan", "cardwell_f10", place),
    ]
    for status, *words in calls:
        got, told = fabbbr(*words)
        assert got == status, told
        assert not CONTROL.search(told), ascii(told)
        assert spelt in told or words[0] == "rnu", told


def test_findings_of_the_doctor_are_text(monkeypatch, fabbbr):
    monkeypatch.setattr(doctor, "_findings", lambda: [Finding(name="[/s]", fit=True, said="[red]\x1b[2J")])
    assert fabbbr("doctor") == (0, "yes  [/s]: [red]\\x1b[2J\n")


def test_verdicts_and_comparisons_are_text(capsys, monkeypatch):
    frame = pd.DataFrame(
        [{"condition": "[/s]", "verdict": "changed", "metric": "[red]", "mean_a": 1.0, "mean_b": 2.0,
          "difference": 1.0, "difference_low": 0.5, "difference_high": 1.5, "ratio": 0.5,
          "ratio_low": 0.4, "ratio_high": 0.6, "exact": False, "same": False, "paired": False}]
    )  # fmt: skip
    monkeypatch.setattr(report, "asked_differently", lambda *_: ["[bold]seed"])
    runs = [types.SimpleNamespace(path=Path(name)) for name in ("[a]", "[b]")]
    results._print_comparison(*runs, frame)
    told = capsys.readouterr().out.splitlines()
    assert told[:4] == ["A is [a], B is [b].", "Different to begin with:", "  [bold]seed", "[/s]"]
    assert "[red]" in told[4].lower()


def test_a_notebook_that_forces_colours_gets_lines_and_no_animation(capsys, monkeypatch):
    """Jupyter sets FORCE_COLOR for what `%%bash` runs, and its pipe is no terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = Terminal()
    with console.status("waiting"):
        console.say(("done", "bold"))
    assert capsys.readouterr().out == "done\n"
