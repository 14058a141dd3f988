"""The command line: statuses, JSON, completion, and no traceback whatever is typed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic import CARDWELL_F10, run_set

from fabbbr import arguments, cli, errors
from fabbbr.errors import CellsFailedError, FabbbrError
from fabbbr_analysis.claims import RULES_VERSION

HEAVY = {"pandas", "numpy", "scipy", "pyarrow", "plotly", "pydantic", "yaml", "rich", "jinja2"}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "run"
    run_set(CARDWELL_F10, path)
    return path


def every_class(base=FabbbrError):
    return {base} | {sub for child in base.__subclasses__() for sub in every_class(child)}


def test_every_status_of_an_error_is_documented_and_every_documented_one_is_raised():
    documented = {
        int(number) for number in re.findall(r"(?:: |; )(\d+) ", arguments.STATUSES.replace("\n", " "))
    }
    raised = {kind.exit_status for kind in every_class() if kind.__module__ == errors.__name__}
    assert documented == raised | {0, 1, cli.INTERRUPTED}
    assert CellsFailedError.exit_status == 10


@pytest.mark.parametrize("kind", sorted(every_class(), key=lambda kind: kind.__name__))
def test_the_exit_status_is_that_of_the_error(fabbbr, monkeypatch, kind):
    def fail(_):
        raise kind("what is wrong, and the remedy")

    monkeypatch.setattr("fabbbr.commands.doctor.main", fail)
    assert fabbbr("doctor") == (kind.exit_status, "", "fabbbr: what is wrong, and the remedy\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "x"), "finished cells are kept, the same command continues"),
        (("slice", "run", "mine", "x"), "finished cells are kept, the same command continues"),
        (("guest", "repeat", "runs/x"), "finished cells are kept, the same command continues"),
        (("datasheet", "bbr3"), "finished cells are kept, the same command continues"),
        (("scoreboard",), "finished cells are kept, the same command continues"),
        (("slice", "teardown", "mine"), "what was reached is remembered, the same command continues"),
        (("doctor",), "the same command begins anew"),
    ],
)
def test_an_interrupt_ends_with_130_and_says_how_to_go_on(fabbbr, monkeypatch, words, said):
    def interrupt(_):
        raise KeyboardInterrupt

    for module in ("run", "slice", "repeat", "datasheet", "scoreboard", "doctor"):
        monkeypatch.setattr(f"fabbbr.commands.{module}.main", interrupt)
    status, _, told = fabbbr(*words)
    assert (status, told) == (130, f"\nfabbbr: interrupted; {said}\n")


BAD = [
    ((), 2, "COMMAND"),
    (("rnu",), 2, "invalid choice"),
    (("scoreboard", "cardwel"), 2, "did you mean 'cardwell'? (there are cardwell, hm,"),
    (("scoreboard", "--jobs", "0"), 2, "--jobs 0: at least one"),
    (("scoreboard", "--within", "0 s"), 2, "--within 0 s: give a time"),
    (("run",), 2, "EXP"),
    (("run", "cardwell_f10", "--outt", "x"), 2, "fabbbr run: error: unrecognized arguments: --outt x; did"),
    (("figure", "x", "--list"), 2, "fabbbr figure: error: unrecognized arguments: --list\n"),
    (("slice", "show", "a", "b"), 2, "fabbbr slice show: error: unrecognized arguments: b\n"),
    (("run", "cardwel_f10"), 2, "did you mean 'cardwell_f10'"),
    (("plan", "cardwell_f10", "--set", "path.rat=1 Gbit/s"), 3, "rate"),
    (("plan", "cardwell_f10", "--set", "path.rate=1 Gbps"), 3, "Gbps"),
    (("plan", "cardwell_f10", "--set", "path.rate=fast"), 3, "fast"),
    (("plan", "cardwell_f10", "--set", "nonsense"), 2, "nonsense"),
    (("plan", "cardwell_f10", "--only", "los=1%"), 2, "loss"),
    (("plan", "cardwell_f10", "--only", "loss=3%"), 2, "3%"),
    (("plan", "cardwell_f10", "--only", "nothing-like-it"), 2, "no cell matches"),
    (("plan", "cardwell_f10", "--repeat", "0"), 3, "repeat"),
    (("plan", "cardwell_f10", "--repeat", "-1"), 3, "repeat"),
    (("plan", "cardwell_f10", "--repeat", "many"), 2, "many"),
    (("plan", "cardwell_f10", "--seed", "one"), 2, "one"),
    (("plan", "cardwell_f10", "--seed", "-1"), 2, "--seed -1: give a whole number from 0 to"),
    (("run", "cardwell_f10", "--dry-run", "--jobs", "0"), 2, "--jobs 0: at least one"),
    (("guest", "build", "--jobs", "0"), 2, "--jobs 0: "),
    (("plan", "cardwell_f10", "--quick", "--full"), 2, "not allowed with"),
    (("plan", "./missing.yaml"), 2, "missing.yaml"),
    (("plan", "."), 2, "no experiment file"),
    (("plan", "/dev/null"), 2, "/dev/null"),
    (("run", "cardwell_f10", "--backend", "fabrik"), 2, "fabrik"),
    (("experiments", "show"), 2, "needs a name"),
    (("experiments", "show", "knit6_e"), 2, "did you mean"),
    (("experiments", "copy", "knit6_e1", "--to", "/proc/none/file.yaml"), 2, "/proc/none/file.yaml"),
    (("report", "/nowhere"), 7, "/nowhere"),
    (("claims", "/nowhere"), 7, "/nowhere"),
    (("compare", "/nowhere", "/nowhere"), 7, "/nowhere"),
    (("compare", "/nowhere"), 2, "DIR"),
    (("verify", "/nowhere"), 7, "/nowhere"),
    (("verify", "/dev/null"), 7, "/dev/null"),
    (("completion", "csh"), 2, "csh"),
    (("guest", "brew"), 2, "brew"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "status", "told"), BAD, ids=[" ".join(words) or "nothing" for words, _, _ in BAD]
)
def test_a_bad_command_line_is_refused_with_its_status_and_names_what_is_wrong(
    fabbbr, tmp_path, monkeypatch, words, status, told
):
    monkeypatch.chdir(tmp_path)
    got, _, complaint = fabbbr(*words)
    assert got == status, complaint
    assert told in complaint
    assert "Traceback" not in complaint
    assert list(tmp_path.iterdir()) == []


def test_a_run_folder_whose_cells_are_gone_is_verified_without_a_traceback(fabbbr, run_folder, tmp_path):
    (tmp_path / "run.json").write_bytes((run_folder / "run.json").read_bytes())
    status, _, complaint = fabbbr("verify", tmp_path)
    assert status == 7
    assert "has no cells" in complaint


def test_verify_names_every_damaged_file(fabbbr, run_folder, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    one, two, three, *_ = sorted((copy / "cells").iterdir())
    (one / "raw" / "extra").write_text("x", encoding="utf-8")
    (two / "manifest.json").write_text("{", encoding="utf-8")
    shutil.rmtree(three)
    status, out, complaint = fabbbr("verify", copy, "--json")
    told = json.loads(out)
    assert status == 7
    assert [one.name in told["problems"][0], two.name in told["problems"][1]] == [True, True]
    assert len(told["problems"]) == 2
    assert told["not_run"] == [three.name]
    assert told["whole_cells"] == len(list((copy / "cells").iterdir())) - 2
    assert told["digests"] == {str(copy): None}
    assert "2 problems" in complaint


@pytest.mark.parametrize(
    "words",
    [
        ("experiments", "--json"),
        ("spec", "schema"),
        ("plan", "cardwell_f10", "--quick", "--repeat", "1", "--json"),
        ("plan", "knit6_e1", "--quick", "--repeat", "1", "--only", "*cca=cubic*", "--commands", "--json"),
        ("run", "cardwell_f10", "--quick", "--repeat", "1", "--dry-run", "--json"),
    ],
    ids=" ".join,
)
def test_json_on_standard_output_is_json_and_nothing_else(fabbbr, words):
    status, out, _ = fabbbr(*words)
    assert status == 0
    assert json.loads(out)


def test_verdicts_as_json_say_by_which_version_of_the_rules_they_were_judged(fabbbr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = fabbbr("claims", "--json")
    assert status == 0
    assert {verdict["rules_version"] for verdict in json.loads(out)} == {RULES_VERSION}


def test_claims_finds_runs_in_folders_of_folders_and_in_no_run(fabbbr, tmp_path, monkeypatch):
    asked = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fabbbr.commands.results.open_runs", lambda paths: asked.append(list(paths)) or [])
    assert "no run below ./runs" in fabbbr("claims")[1]
    for place in ("runs/one", "runs/demo/two", "runs/demo/two/guest", "elsewhere/three"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "run.json").touch()
    for words in ((), ("runs/demo",), ("runs/demo/two", "elsewhere"), ("nothing",)):
        assert fabbbr("claims", *words)[0] == 0
    assert [[str(path) for path in paths] for paths in asked] == [
        [],
        ["runs/demo/two", "runs/one"],
        ["runs/demo/two"],
        ["runs/demo/two", "elsewhere/three"],
        ["nothing"],
    ]


def test_verify_prints_json_of_an_undamaged_run(fabbbr, run_folder):
    status, out, _ = fabbbr("verify", run_folder, "--json")
    told = json.loads(out)
    digest = told.pop("digests")[str(run_folder)]
    assert (status, told) == (0, {"whole_cells": 80, "problems": [], "not_run": [], "without_digest": 0})
    assert f"digest sha256 {digest}\n" in fabbbr("verify", run_folder)[1]


def test_the_digest_of_a_run_is_what_sha256sum_says(fabbbr, run_folder):
    lines = subprocess.run(  # noqa: S602 - as the documentation has it
        ("LC_ALL=C sha256sum run.json cells/*/manifest.json | sha256sum; sed 2d run.json | "
            "sha256sum; sed -n 2p run.json"),
        cwd=run_folder, shell=True, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert lines[0].split()[0] in fabbbr("verify", run_folder)[1]
    assert lines[2] == f' "digest": "{lines[1].split()[0]}",'


def test_a_dry_run_makes_no_folder(fabbbr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fabbbr("run", "cardwell_f10", "--quick", "--repeat", "1", "--dry-run")[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_a_plan_says_how_many_flows_there_are_of_each_kind(fabbbr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mixed.yaml").write_text(
        "{id: mixed, title: Mixed, slice: dumbbell, path: {rate: 10 Mbit/s, rtt: 40 ms}, repeat: 1, flows: ["
        "{cca: cubic, count: 2, duration: 5 s}, {cca: bbr3, streams: 16, duration: 5 s},"
        "{udp: 1 Mbit/s, duration: 5 s}, {ping: 100 ms}]}",
        encoding="utf-8",
    )
    status, out, complaint = fabbbr("plan", "mixed.yaml")
    assert status == 0, complaint
    assert "2 cubic, 1 bbr3 of 16 streams, 1 UDP, 1 ping" in out


def test_a_plan_cuts_no_id_off_however_much_the_table_says(fabbbr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    many = ", ".join(
        f"{{cca: {cca}, streams: 2, duration: 5 s}}" for cca in ("reno", "cubic", "vegas", "bbr1")
    )
    Path("wide.yaml").write_text(
        "{id: wide, title: Wide, slice: dumbbell, path: {rate: 10 Mbit/s, rtt: 40 ms, aqm: $discipline},"
        f" repeat: 1, vary: {{discipline: [taildrop, fq_codel]}}, flows: [{many}]}}",
        encoding="utf-8",
    )
    rows = [line.split() for line in fabbbr("plan", "wide.yaml")[1].splitlines()]
    named = {row[0] for row in rows if row and "discipline" in row[0]}
    assert named == {"discipline=taildrop,r1", "discipline=fq_codel,r1"}


@pytest.mark.parametrize("name", ["cardwell_f10", "hm_experiment4"])  # the latter has a trace beside it
def test_an_experiment_that_is_copied_is_planned_like_the_bundled_one(fabbbr, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert fabbbr("experiments", "copy", name)[0] == 0
    bundled = json.loads(fabbbr("plan", name, "--quick", "--json")[1])
    own = json.loads(fabbbr("plan", f"./{name}.yaml", "--quick", "--json")[1])
    assert own == bundled
    status, _, complaint = fabbbr("experiments", "copy", name)
    assert status == 2
    assert "is there already" in complaint


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_lines_that_name_the_command(fabbbr, shell):
    status, out, _ = fabbbr("completion", shell)
    assert status == 0
    assert "fabbbr" in out


README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^fabbbr (.*?)(?:  .*)?$", README, flags=re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_can_be_given_as_it_is_printed(command):
    assert arguments.build_parser().parse_args(shlex.split(command)).module


def test_the_readme_says_how_a_shell_finds_the_program_before_it_is_called_by_its_name():
    assert len(COMMANDS) > 8
    assert README.index('export PATH="$PWD/.venv/bin:$PATH"') < README.index("\nfabbbr ")


OWN = """\
id: own
title: t
slice: two_site
path: {rate: $rate, rtt: 40 ms}
flows: [{cca: $cca, duration: 5 s}]
vary: {rate: [10 Mbit/s, 20 Mbit/s], cca: [cubic, bbr1]}
"""


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fabbbr run ow", ["own.yaml "]),
        ("fabbbr run cardwell_f1", ["cardwell_f10", "cardwell_f12"]),
        ("fabbbr plan in", ["inner/"]),
        ("fabbbr plan inner/", ["inner/deep.yml "]),
        ("fabbbr run own.yaml --only ra", ["rate="]),
        ("fabbbr run own.yaml --only cca=bbr1,rate=", ["10Mbit", "20Mbit"]),
        ("fabbbr run own.yaml --only rate=20Mbit|1", ["10Mbit"]),
        ("fabbbr run own.yaml --set path.ra", ["path.rate="]),
        ("fabbbr run own.yaml --set flows.0.fr", ["flows.0.from="]),
        ("fabbbr run own.yaml --set ", ["path.rate=", "repeat=", "sample_period=", "cca="]),
        ("fabbbr run nowhere.yaml --only r", []),
    ],
)
def test_a_shell_is_offered_files_axes_values_and_keys(tmp_path, line, offered):
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "deep.yml").touch()
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9"}
    breaks = {"_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_COMP_WORDBREAKS": " \t\n\"'><=;|&(:"}
    done = subprocess.run(  # noqa: S602 - argcomplete answers on descriptor 8
        f"{sys.executable} -m fabbbr.cli 8>&1 9>/dev/null", shell=True, cwd=tmp_path, capture_output=True,
        text=True, check=False,
        env=os.environ | asked | breaks,
    )  # fmt: skip
    told = [word.rstrip("\\") for word in done.stdout.splitlines()]
    assert all(any(word.rstrip() == one.rstrip() for word in told) for one in offered), (told, done.stderr)
    assert offered or not told


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("--version",)], ids=" ".join)
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys\nfrom fabbbr.cli import main\n"
        f"try:\n    main({list(words)!r})\nexcept SystemExit:\n    pass\n"
        "print(','.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stderr.strip().splitlines()[-1].split(",")) == set()


def test_help_lists_the_exit_statuses(fabbbr):
    _, out, _ = fabbbr("--help")
    assert "130 interrupted" in out
    assert "10 some cells failed" in out


@pytest.mark.parametrize(
    ("error", "status", "remedy"),
    [
        (MemoryError(), 5, "end other programs"),
        (OSError(24, "Too many open files", "/a/file"), 5, "raise ulimit -n"),
        (OSError(28, "No space left on device", "/a/file"), 7, "free some space"),
    ],
)
def test_what_the_system_refuses_is_said_in_one_line_with_its_remedy(
    fabbbr, monkeypatch, error, status, remedy
):
    def fail(_):
        raise error

    monkeypatch.setattr("fabbbr.commands.doctor.main", fail)
    got, _, complaint = fabbbr("doctor")
    assert got == status
    assert remedy in complaint
    assert len(complaint.splitlines()) == 1


NO_LIBRARY = "libstdc++.so.6: cannot open shared object file: No such file or directory"
BROKEN = """\
try:
    raise ImportError("{why}")
except ImportError as error:
    raise ImportError("a page\\nof advice") from error
"""


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (BROKEN.format(why=NO_LIBRARY), (NO_LIBRARY, "libstdc++6")),
        ("import nowhere.to_be_found", ("No module named 'nowhere'", "pip install")),
    ],
)
def test_a_library_that_cannot_be_loaded_is_said_in_one_line_with_its_remedy(tmp_path, broken, said):
    (tmp_path / "pydantic.py").write_text(broken)
    argv = (sys.executable, "-m", "fabbbr.cli", "plan", "cardwell_f10")
    path = os.pathsep.join((str(tmp_path), *sys.path))
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 5, done.stderr
    assert all(words in done.stderr for words in said)
    assert len(done.stderr.splitlines()) == 1


def test_a_name_of_our_own_that_is_missing_is_a_bug_and_shows_its_stack(fabbbr, monkeypatch):
    def fail(_):
        from fabbbr.errors import NoSuchError  # noqa: F401

    monkeypatch.setattr("fabbbr.commands.doctor.main", fail)
    with pytest.raises(ImportError):
        fabbbr("doctor")


def test_an_error_that_nobody_foresaw_is_one_line_with_status_1(fabbbr, monkeypatch):
    def fail(_):
        raise PermissionError(13, "Permission denied", "/some/place")

    monkeypatch.setattr("fabbbr.commands.doctor.main", fail)
    status, _, complaint = fabbbr("doctor")
    assert status == 1
    assert "/some/place" in complaint
    assert len(complaint.splitlines()) == 1


PRINTS = [
    ("plan", "cardwell_f10", "--full", "--commands"),
    ("experiments",),
    ("spec", "schema"),
    ("--help",),
    ("completion",),
]


def command(words, **options):
    # What is printed last stands in a buffer until the end, unless this is set.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    argv = (sys.executable, "-m", "fabbbr.cli", *words)
    return subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_what_only_prints_ends_quietly_when_nobody_reads_on(words):
    with command(words, stdout=subprocess.PIPE) as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait(30)) == ("", 0)


@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_a_full_standard_output_is_said_with_a_status(words):
    with Path("/dev/full").open("w", encoding="utf-8") as full, command(words, stdout=full) as process:
        said = process.stderr.read()
        assert process.wait(30) == 7
    assert said == (
        "fabbbr: standard output cannot be written: No space left on device; free some "
        "space, or send it elsewhere\n"
    )


def test_the_status_of_a_command_that_failed_is_not_hidden_by_a_full_standard_output():
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        with command(("verify", "/nowhere", "--json"), stdout=full) as process:
            process.stderr.read()
            assert process.wait(30) == 7
        with command(("rnu",), stdout=full) as process:
            process.stderr.read()
            assert process.wait(30) == 2


def test_a_pipe_that_is_not_standard_output_is_no_reason_to_end_quietly(fabbbr, monkeypatch):
    def fail(_):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("fabbbr.commands.doctor.main", fail)
    status, _, complaint = fabbbr("doctor")
    assert status == 1
    assert "Broken pipe" in complaint


@pytest.mark.parametrize("words", [*PRINTS, ("rnu",), ("verify", "/nowhere")], ids=" ".join)
def test_the_status_is_the_same_when_there_is_nobody_to_tell(words):
    """Both streams full, or closed with standard input: nothing is said, and the status says it."""
    argv = [sys.executable, "-m", "fabbbr.cli", *words]
    plain = subprocess.run(argv, capture_output=True, check=False).returncode
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        assert subprocess.run(argv, stdout=full, stderr=full, check=False).returncode == (plain or 7)
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *argv]
    assert subprocess.run(closed, check=False).returncode == plain


def test_a_closed_stream_is_not_mixed_up_with_a_file_that_was_opened_since(tmp_path):
    """Descriptor 2 would be the next file: what a library complains about would be written into it."""
    code = (
        "import contextlib, os, sys\nfrom pathlib import Path\nfrom fabbbr.streams import guarded\n"
        "with guarded(), open(os.devnull), open(os.devnull), Path(sys.argv[1]).open('w') as file:\n"
        "    os.write(2, b'complaint')\n    file.write('mine')\n"
    )
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code, tmp_path / "file"]
    assert subprocess.run(closed, check=False).returncode == 0
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_that_is_too_long_is_refused(fabbbr):
    status, _, told = fabbbr("experiments", "copy", "knit6_e1", "--to", "y" * 300)
    assert status == 2
    assert "File name too long; name another file with --to" in told


def test_a_copy_does_not_follow_a_link_to_nowhere(fabbbr, tmp_path):
    (tmp_path / "mine.yaml").symlink_to(tmp_path / "elsewhere")
    status, _, told = fabbbr("experiments", "copy", "knit6_e1", "--to", tmp_path / "mine.yaml")
    assert (status, "is there already" in told) == (2, True)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("words", [("report",), ("claims",), ("compare", "RUN")], ids=" ".join)
def test_a_run_folder_whose_name_is_not_utf_8_is_verified_and_not_analysed(
    fabbbr, run_folder, tmp_path, words
):
    odd = tmp_path / os.fsdecode(b"run-\xff")
    shutil.copytree(run_folder, odd)
    assert fabbbr("verify", odd)[0] == 0
    status, _, told = fabbbr(words[0], odd, *([run_folder] if len(words) > 1 else []))
    assert status == 9
    assert r"run-\xff' is not UTF-8, which tables need; rename the folder" in told


def test_a_run_without_any_measurement_is_reported_on_as_such(fabbbr, run_folder, tmp_path):
    """Cells that are whole, and have no raw file."""
    status, _, told = fabbbr("report", run_folder, "--to", tmp_path / "page")
    assert (status, told) == (0, "")
