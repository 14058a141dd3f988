"""A slice file of the user's own is Python: it runs when somebody said that it may, and as it was then."""

import hashlib
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fabbbr as fb
from fabbbr import bundled, laboratory
from fabbbr.errors import SpecError, UntrustedError
from fabbbr.plan import definitions
from fabbbr.plan.opening import open_plan
from fabbbr.spec.experiment import SliceChoice
from fabbbr.trust import Code, Trust, memory_path

SLICE = """\
from pathlib import Path

from fabbbr.model import Host, Switch
from fabbbr.topology import Link, Pair, Topology

with (Path(__file__).parent / "ran").open("a") as ran:
    ran.write("once\\n")


def mine(*, hosts: int = 1) -> Topology:
    assert hosts < 9
    return Topology(
        hosts=(Host(name="h1"), Host(name="h2")),
        switches=(Switch(name="s1"),),
        links=(Link(name="in", a="h1", b="s1"), Link(name="wan", a="s1", b="h2", bottleneck=True)),
        pairs=(Pair(sender="h1", receiver="h2"),),
    )
"""
EXPERIMENT = """\
id: mine
title: From somewhere
slice: {name: ./mine.py, hosts: $hosts}
path: {rate: 10 Mbit/s, rtt: 20 ms}
flows: [{cca: cubic, duration: 1 s}]
vary: {hosts: [1, 2, 3]}
repeat: 1
"""


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "fabbbr" / "trusted.json"


@pytest.fixture
def mine(tmp_path, state):
    """A folder as it was unpacked."""
    folder = tmp_path / "downloaded"
    folder.mkdir()
    (folder / "mine.py").write_text(SLICE)
    (folder / "mine.yaml").write_text(EXPERIMENT)
    return folder


def ran(folder):
    return (folder / "ran").exists()


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fabbbr(*words, **how):
    """The command where nobody can be asked."""
    return subprocess.run(
        [sys.executable, "-m", "fabbbr.cli", *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **how,
    )


def at_a_terminal(answer, *words, cwd):
    """The command on a terminal of its own, with ``answer`` typed once it asks: status and what it showed."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        os.execv(sys.executable, [sys.executable, "-m", "fabbbr.cli", *map(str, words)])  # noqa: S606
    shown, answered, deadline = b"", False, time.monotonic() + 120
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # it ended
                break
        if b"[y/N]" in shown and not answered:
            os.write(terminal, answer)
            answered = True
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode(errors="replace")


WAYS_IN = [
    ("plan", "mine.yaml"),
    ("plan", "mine.yaml", "--json"),
    ("plan", "mine.yaml", "--commands"),
    ("plan", "innocent.yaml", "--set", "where=mine.py"),
    ("plan", "innocent.yaml", "--quick"),
    ("plan", "innocent.yaml"),
    ("run", "mine.yaml"),
    ("run", "mine.yaml", "--dry-run"),
    ("run", "mine.yaml", "--json", "--no-report"),
]


@pytest.mark.parametrize("words", WAYS_IN, ids=" ".join)
def test_where_nobody_can_be_asked_no_slice_of_somebodys_runs(mine, words):
    # A slice may also hide in one value of an axis, or in a profile.
    (mine / "innocent.yaml").write_text(
        EXPERIMENT.replace("{name: ./mine.py, hosts: $hosts}", "$where").replace(
            "vary: {hosts: [1, 2, 3]}", "vary: {where: [two_site, mine.py]}\nquick: {where: [mine.py]}"
        )
    )
    done = fabbbr(*words, cwd=mine)
    assert not ran(mine)
    assert done.returncode == 2, done
    assert not done.stdout
    for said in (str(mine / "mine.py"), digest(mine / "mine.py"), "--trust"):
        assert said in done.stderr


def test_the_switch_lets_it_run_for_one_call_and_remembers_nothing(mine, state):
    assert fabbbr("plan", "mine.yaml", "--trust", cwd=mine).returncode == 0
    assert ran(mine)
    assert not state.exists()
    assert fabbbr("plan", "mine.yaml", cwd=mine).returncode == 2


def test_a_yes_at_the_terminal_holds_for_that_file_and_content(mine, state):
    status, shown = at_a_terminal(b"y\n", "plan", "mine.yaml", cwd=mine)
    assert status == 0, shown
    assert shown.count("[y/N]") == 1  # of three conditions
    assert str(mine / "mine.py") in shown.replace("\r\n", "")
    assert digest(mine / "mine.py")[:16] in shown
    assert "Python" in shown
    assert "all your rights" in shown
    assert fabbbr("plan", "mine.yaml", cwd=mine).returncode == 0
    (mine / "mine.py").write_text(SLICE + "# and more\n")
    assert fabbbr("plan", "mine.yaml", cwd=mine).returncode == 2
    (mine / "mine.py").write_text(SLICE)
    assert fabbbr("plan", "mine.yaml", cwd=mine).returncode == 0
    shutil.copytree(mine, mine.parent / "elsewhere")
    assert fabbbr("plan", "mine.yaml", cwd=mine.parent / "elsewhere").returncode == 2


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04", b"yessir\n", b"\xff\n"])
def test_anything_but_yes_is_no_and_is_not_remembered(mine, state, answer):
    status, shown = at_a_terminal(answer, "plan", "mine.yaml", cwd=mine)
    assert status == 2
    assert "--trust" in shown
    assert not ran(mine)
    assert not state.exists()


def test_a_name_cannot_steer_the_terminal_that_asks(mine):
    hostile = mine.parent / "a\x1b[2Jb"
    mine.rename(hostile)
    _, shown = at_a_terminal(b"n\n", "plan", "mine.yaml", cwd=hostile)
    assert "\x1b[2J" not in shown
    assert r"a\x1b[2Jb" in shown.replace("\r\n", "")


def test_json_is_for_programs_which_are_not_asked(mine):
    status, shown = at_a_terminal(b"y\n", "plan", "mine.yaml", "--json", cwd=mine)
    assert status == 2
    assert "[y/N]" not in shown
    assert not ran(mine)


def test_a_notebook_has_to_say_so_too(mine, monkeypatch):
    with pytest.raises(UntrustedError, match="trust=True"):
        fb.run(str(mine / "mine.yaml"))
    assert not ran(mine)

    class PlannedError(Exception):
        pass

    def fail(*_):
        raise PlannedError

    monkeypatch.setattr(laboratory, "open_backend", fail)
    with pytest.raises(PlannedError):
        fb.run(str(mine / "mine.yaml"), trust=True)
    assert ran(mine)


def never(_code):
    pytest.fail("it asked")


@pytest.mark.parametrize("name", bundled.names("slices"))
def test_what_is_bundled_never_asks(name, state):
    assert definitions.load(SliceChoice(name=name), trust=Trust(ask=never)).hosts


def load(folder, trust=None, **parameters):
    return definitions.load(SliceChoice(name="./mine.py", parameters=parameters), beside=folder, trust=trust)


def yes(_code):
    return True


def test_what_runs_is_what_was_asked_about_even_if_the_file_changes_meanwhile(mine):
    def yes_while_it_changes(code):
        assert code == Code(place=str(mine / "mine.py"), sha256=hashlib.sha256(SLICE.encode()).hexdigest())
        (mine / "mine.py").write_text(SLICE.replace("wan", "evil"))
        return True

    assert load(mine, Trust(ask=yes_while_it_changes)).trunk == "wan"
    with pytest.raises(UntrustedError):
        load(mine)


def test_bytecode_that_was_planted_beside_the_file_is_not_what_runs(mine):
    """A .pyc that says of itself that it need not be compared with its source."""
    (mine / "mine.py").write_text(SLICE.replace("wan", "evil"))
    planted = (
        "import py_compile, sys\n"
        "unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH\n"
        "py_compile.compile(sys.argv[1], invalidation_mode=unchecked)"
    )
    subprocess.run([sys.executable, "-c", planted, mine / "mine.py"], check=True)
    assert list((mine / "__pycache__").glob("mine.*.pyc"))
    (mine / "mine.py").write_text(SLICE)
    assert load(mine, Trust(anything=True)).trunk == "wan"


@pytest.mark.parametrize("name", ["mine.pyc", "mine.abi3.so", "mine"])
def test_only_source_can_be_trusted(mine, name):
    shutil.copy(mine / "mine.py", mine / name)
    with pytest.raises(SpecError, match=r"ends in \.py"):
        definitions.load(SliceChoice(name=f"./{name}"), beside=mine, trust=Trust(anything=True))


@pytest.mark.parametrize(
    "content", [b"def mine(): return '\x00'", b"(" * 10_000, b"# coding: nonsense\n", b"\xff = 1"]
)
def test_what_is_no_python_is_an_error_of_the_file(mine, content):
    (mine / "mine.py").write_bytes(content)
    with pytest.raises(SpecError, match=r"mine\.py.*: not Python"):
        load(mine, Trust(anything=True))


def test_a_link_is_the_file_it_leads_to(mine):
    load(mine, Trust(ask=yes))
    other = mine.parent / "other"
    other.mkdir()
    (other / "mine.py").symlink_to(mine / "mine.py")
    assert load(other, Trust(ask=never)).trunk == "wan"


def test_what_a_definition_asserts_holds_in_an_optimizing_interpreter(mine):
    done = fabbbr(
        "plan",
        "mine.yaml",
        "--trust",
        "--set",
        "hosts=9",
        cwd=mine,
        env={**os.environ, "PYTHONOPTIMIZE": "2"},
    )
    assert done.returncode == 3, done
    assert "AssertionError" in done.stderr


def test_the_memory_is_the_callers_alone(mine, state):
    before = os.umask(0)
    try:
        load(mine, Trust(ask=yes))
    finally:
        os.umask(before)
    assert state.stat().st_mode & 0o777 == 0o600
    assert state.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(state.read_text()) == {"slices": {str(mine / "mine.py"): [digest(mine / "mine.py")]}}
    for shared in (0o620, 0o602):
        state.chmod(shared)
        notes = []
        with pytest.raises(UntrustedError):
            load(mine, Trust(note=notes.append))
        assert f"{state} can be written by others" in notes[0]


def test_a_memory_in_the_folder_that_was_unpacked_counts_for_nothing(mine, state, monkeypatch):
    """A relative place would be below the folder in which the command is given."""
    load(mine, Trust(ask=yes))
    shutil.copytree(state.parent.parent, mine / "state")
    monkeypatch.chdir(mine)
    for variables in (
        {"XDG_STATE_HOME": "state", "HOME": str(mine.parent)},
        {"XDG_STATE_HOME": "", "HOME": "state"},
    ):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(UntrustedError):
            load(mine)


def test_without_the_variable_it_is_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert memory_path() == tmp_path / ".local/state/fabbbr/trusted.json"


@given(
    damage=st.one_of(
        st.binary(max_size=80), st.sampled_from([b"", b"[]", b'{"slices": 3}', b'{"slices": {"a": "b"}}'])
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_damaged_memory_is_said_and_asked_again_and_made_anew(mine, state, damage):
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_bytes(damage)
    notes = []
    load(mine, Trust(ask=yes, note=notes.append))
    assert [str(state) in note for note in notes] == [True]
    load(mine, Trust(ask=never, note=pytest.fail))


@pytest.mark.parametrize("obstacle", ["file", "link", "folder"])
def test_an_answer_that_cannot_be_kept_holds_for_this_call(mine, state, obstacle):
    state.parent.parent.mkdir()
    if obstacle == "file":
        state.parent.write_text("no folder")
    else:
        state.parent.mkdir()
        {"link": lambda: state.symlink_to(mine / "mine.yaml"), "folder": state.mkdir}[obstacle]()
    asked, notes = [], []
    trust = Trust(ask=lambda code: not asked.append(code), note=notes.append)
    for hosts in "123":
        load(mine, trust, hosts=hosts)
    assert len(asked) == 1
    assert any("not remembered" in note and str(state.parent) in note for note in notes)
    assert (mine / "mine.yaml").read_text() == EXPERIMENT


def test_answers_at_the_same_time_do_not_lose_one_another(mine, state):
    """Eight threads, each with its own descriptor of the lock, as processes have."""
    names = [f"m{number}.py" for number in range(8)]

    def agree(name):
        for version in range(5):
            Trust(ask=yes, note=pytest.fail).require(mine / name, f"{name} {version}".encode())

    threads = [Thread(target=agree, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = json.loads(state.read_text())["slices"]
    assert {Path(place).name: len(digests) for place, digests in kept.items()} == dict.fromkeys(names, 5)


def test_a_place_that_is_not_utf_8_is_remembered_too(mine):
    odd = Path(os.fsdecode(os.fsencode(mine.parent) + b"/\xff"))
    mine.rename(odd)
    load(odd, Trust(ask=yes, note=pytest.fail))
    assert load(odd, Trust(ask=never, note=pytest.fail)).trunk == "wan"


def test_a_plan_of_bundled_slices_leaves_no_memory(state):
    open_plan("cardwell_f10", seed=1, profile="quick", trust=Trust(ask=never, note=pytest.fail))
    assert not state.exists()


def test_the_switch_is_offered_by_the_shell(tmp_path):
    for command in ("plan", "run"):
        line = f"fabbbr {command} --tr"
        said = tmp_path / "said"
        subprocess.run(
            [sys.executable, "-m", "fabbbr.cli"],
            env={
                **os.environ, "_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)),
                "_ARGCOMPLETE_STDOUT_FILENAME": str(said), "IFS": "\n", "_ARGCOMPLETE_IFS": "\n",
            },
            check=False,
        )  # fmt: skip
        assert said.read_text().strip() == "--trust"
