"""Files that a user names: each is read, or refused by its name, whatever it is."""

import os
import re

import pytest
from counted_work import work

from fabbbr import cli, limits
from fabbbr.errors import FabbbrError, PlanError, SpecError, UsageError
from fabbbr.plan import opening
from fabbbr.trust import Trust

FILE = (
    "id: small\ntitle: t\nslice: two_site\npath: {{trace: '{}', rtt: 40 ms}}\nflows: [{{cca: "
    "cubic, duration: {} s}}]\nrepeat: 1\n"
)


@pytest.fixture
def follow(tmp_path):
    """Plan an experiment that follows a trace of this name."""

    def plan(name, seconds=9):
        (tmp_path / "e.yaml").write_text(FILE.format(name, seconds), encoding="utf-8")
        return opening.open_plan(str(tmp_path / "e.yaml"), seed=1).cells

    return plan


@pytest.mark.parametrize(
    "name",
    [
        "/dev/zero",
        "/dev/full",
        "/dev/tty",
        "pipe",
        "folder",
        "/proc/self/mem",
        "gone",
        "x" * 300,
        "/dev/stdin",
    ],
)
def test_a_trace_that_is_no_file_is_refused_and_not_waited_for(follow, tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SpecError, match=rf"cannot read .*{re.escape(name)}: .*; name"):
        follow(name)


def test_a_trace_of_a_gigabyte_is_refused_before_it_is_read(follow, tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 30)
    said = f"huge: more than {limits.TRACE_BYTES} bytes, what is left of {limits.TRACE_BYTES} for all traces"
    with pytest.raises(SpecError, match=said):
        follow("huge")


def test_all_traces_of_an_experiment_share_one_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "TRACE_BYTES", 100)
    text = FILE.format("$t", 9).replace("'", "") + "vary: {t: [one, two]}\n"
    (tmp_path / "e.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "one").write_text("1\n" * 40, encoding="utf-8")
    (tmp_path / "two").write_text("1\n" * 9, encoding="utf-8")
    assert len(opening.open_plan(str(tmp_path / "e.yaml"), seed=1).cells) == 2
    (tmp_path / "two").write_text("1\n" * 11, encoding="utf-8")
    with pytest.raises(SpecError, match="two: more than 20 bytes, what is left of 100 for all traces"):
        opening.open_plan(str(tmp_path / "e.yaml"), seed=1)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("9" * 5000 + "\n", SpecError,
         r"t:1: '9{60}…' \(5000 characters\) is not a whole number of milliseconds"),
        ("1000000000000\n", SpecError, "t:1: '1000000000000' is not a whole number"),
        ("999999999\n", PlanError, "has a mean rate of 0 bit/s; record one of 8 kbit/s to 1 Tbit/s"),
        ("1\n" * 100_000, PlanError, r"has a mean rate of 1.2 Tbit/s; record one of"),
    ],
    ids=["digits", "centuries", "slow", "fast"],
)  # fmt: skip
def test_a_trace_that_no_link_can_follow_is_refused(follow, tmp_path, text, error, said):
    (tmp_path / "t").write_text(text, encoding="utf-8")
    with pytest.raises(error, match=said):
        follow("t")


def test_a_trace_that_changes_for_a_day_is_refused(follow, tmp_path, monkeypatch):
    (tmp_path / "t").write_text("".join(f"{k}\n" for k in (*range(1, 150), 200)), encoding="utf-8")
    assert follow("t", 86_400)[0].steps == ()
    # An AQM cannot follow single opportunities.
    monkeypatch.setitem(globals(), "FILE", FILE.replace("rtt: 40 ms", "rtt: 40 ms, aqm: fq_codel"))
    assert len(follow("t", 3600)[0].steps) == 36_000
    with pytest.raises(
        PlanError, match="changes the rate 864000 times until 86400 s; at most 100000, shorten the flows"
    ):
        follow("t", 86_400)


@pytest.mark.parametrize(
    "name", ["/dev/zero", "pipe.yaml", "folder.yaml", "x" * 300 + ".yaml", "/dev/stdin", "./\x00.yaml"]
)
def test_an_experiment_that_is_no_file_is_refused_and_not_waited_for(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(UsageError, match="no experiment file"):
        opening.open_plan(name, seed=1)


def test_an_experiment_that_became_a_pipe_after_it_was_found_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecError, match="it is no file; name one"):
        opening.read_text(tmp_path / "pipe")


def test_an_experiment_of_gigabytes_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(
        SpecError, match=r"huge\.yaml: more than 1000000 bytes, the most of an experiment file; shorten it"
    ):
        opening.open_plan(str(tmp_path / "huge.yaml"), seed=1)


def test_showing_a_file_that_is_not_text_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *_: None)
    (tmp_path / "e.yaml").write_bytes(b"\xff\xfe")
    assert cli.main(["experiments", "show", str(tmp_path / "e.yaml")]) == 3
    assert "byte 0 is not UTF-8" in capsys.readouterr().err


def test_a_slice_of_thousands_of_hosts_is_refused_by_their_number(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from fabbbr.model import Host, Switch\nfrom fabbbr.topology import Link, Pair, Topology\n"
        "def mine():\n    n = range(100_000)\n"
        "    return Topology(hosts=tuple(Host(name=f'h{i}') for i in n), switches=(Switch(name='s'),),\n"
        "        links=tuple(Link(name=f'l{i}', a='s', b=f'h{i}', bottleneck=True) for i in n),\n"
        "        pairs=(Pair(sender='h1', receiver='h2'),))\n",
        encoding="utf-8",
    )
    text = FILE.format("", 9).replace("trace: ''", "rate: 1 Mbit/s").replace("two_site", "./mine.py")
    (tmp_path / "e.yaml").write_text(text, encoding="utf-8")
    told = []

    def read():
        try:
            opening.open_plan(str(tmp_path / "e.yaml"), seed=1, trust=Trust(anything=True))
        except FabbbrError as error:
            told.append(str(error))

    assert work(read) < 1_000_000
    assert "topology: 100001 hosts and switches; at most 2048, make the slice smaller" in told[0]


def test_a_plan_with_too_many_parts_is_refused_before_it_is_whole(tmp_path):
    rtts = ", ".join(f"{2 * k + 10} ms" for k in range(100))
    text = (
        "id: parts\ntitle: t\nslice: {name: dumbbell, hosts: 200}\npath: {rate: 1 Gbit/s, rtt: $rtt}\n"
        f"flows: [{{cca: cubic, count: 200, duration: 9 s}}]\nvary: {{rtt: [{rtts}]}}\nrepeat: 1000\n"
    )
    (tmp_path / "e.yaml").write_text(text, encoding="utf-8")
    told = []

    def read():
        with pytest.raises(PlanError) as caught:
            opening.open_plan(str(tmp_path / "e.yaml"), seed=1)
        told.append(str(caught.value))

    assert work(read) < 10_000_000
    assert (
        "parts: more than 2000000 hosts, switches, links, flows, steps and traces in all cells (2006000 "
        "in the first 2 of 100"
    ) in told[0]
