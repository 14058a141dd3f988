"""A certificate needs all evidence: what a tool leaves out or prints otherwise never certifies a cell.

The evidence is that of a real cell, in ``tests/golden/cell``.
"""

import copy
import json
import re
import shutil
from pathlib import Path

import pytest
from golden_cell import CELL, RAW
from places import GUEST
from recorded_run import create

from fabbbr.backends.base import Report
from fabbbr.certify.certificate import certify
from fabbbr.certify.evidence import Evidence
from fabbbr.errors import BackendError
from fabbbr.execute import execute
from fabbbr.job.build import prepare

PREPARED = prepare(CELL, GUEST)
NO_EVIDENCE = {
    "console.log": "words for whoever looks for a cause",
    "queues.s1.json": "samples for the tables, whose reader says what is wrong with them",
    "queues.s1.times": "as above",
    "queues.w1.json": "as above",
    "queues.w1.times": "as above",
    "sockets.h1.times": "as above",
    "sockets.h2.times": "as above",
}
"""Raw files that no check reads, each with the reason."""

WHOLE = {
    "gone": None,
    "empty": b"",
    "a list": b"[]",
    "an object": b"{}",
    "a number": b"5",
    "words": b"Segmentation fault\n",
    "not UTF-8": b"\xff\xfe\x00",
    "too deep": b"[" * 100_000,
}
FILES = sorted(path.name for path in RAW.iterdir() if path.name not in NO_EVIDENCE)


def outcome(raw):
    """``certified``, ``uncertified`` or ``failed``: nothing else may come of any evidence."""
    try:
        certificate = certify(PREPARED, Evidence.read(raw), lossy_links=1)
    except BackendError:
        return "failed"
    return "certified" if certificate.passed else "uncertified"


@pytest.fixture
def raw(tmp_path):
    return Path(shutil.copytree(RAW, tmp_path / "raw"))


def test_the_evidence_as_it_was_recorded_is_certified(raw):
    assert outcome(raw) == "certified"


@pytest.mark.parametrize("how", WHOLE)
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_what_its_tool_prints_certifies_nothing(raw, name, how):
    (raw / name).unlink() if WHOLE[how] is None else (raw / name).write_bytes(WHOLE[how])
    assert outcome(raw) in ("failed", "uncertified")


@pytest.mark.parametrize("name", NO_EVIDENCE)
def test_a_file_that_is_named_as_no_evidence_is_none(raw, name):
    (raw / name).unlink()
    assert outcome(raw) == "certified"


# Keys


DELETED = object()
INSTEAD = (DELETED, [], "x")
LONGEST_LIST = 3
"""Of a longer one, the arrivals of the burst, only this many elements are tried."""


def places(value, path=()):
    """Path of every key and of every element of a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value[: LONGEST_LIST if len(value) > 20 else None]):
            yield (*path, number)
            yield from places(inner, (*path, number))


def put(document, path, new):
    """A copy of ``document`` with something else at ``path``."""
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if new is DELETED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return changed


NO_EVIDENCE_WITHIN = {
    r"counters\.\w+\.json/\w+/links/\d+/(?!ifname|stats64)\w+(/.*)?": (
        "how the interface is, not what it counted"
    ),
    r"counters\.\w+\.json/\w+/links/\d+/stats64/(rx|tx)/(?!packets|dropped)\w+": (
        "packets are what is conserved"
    ),
    r"counters\.\w+\.json/\w+/links/\d+/stats64/tx/dropped": (
        "what a queueing discipline drops is counted by itself"
    ),
    r"counters\.\w+\.json/\w+/(links|qdiscs)/0(/(ifname|dev))?": "the loopback, which no flow crosses",
    r"counters\.\w+\.json/\w+/qdiscs/\d+/(options|parent|refcnt|bytes|overlimits|requeues)": "not packets",
    r"counters\.\w+\.json/\w+/qdiscs/\d+/options/.*": "settings are read back before",
    r"counters\.\w+\.json/\w+/qdiscs/\d+/kind": "of what kind it is, is read back before",
    r"counters\.\w+\.json/\w+/qdiscs/(?!4/)\d+/handle": (
        "it is looked up by its device; the lossy one by its handle"
    ),
    r"counters\.\w+\.json/w1/qdiscs/(2|5|6)(/(dev|root))?": "not a root, and not where data is lost",
    r"counters\.\w+\.json/\w+/qdiscs/0/root": "the loopback",
    r"counters\.\w+\.json/(h1|s1|w1)/netstat": "memory of those who receive nothing",
    r"flow-[01]\.\w+\.json/(start|intervals)(/.*)?": "for the tables: the sums say whether data was carried",
    r"flow-[01]\.\w+\.json/end/(?!sum_).*": "for the tables",
    r"flow-[01]\.\w+\.json/end/sum_\w+/(?!bytes).*": "for the tables",
    r"flow-[01]\.client\.json/end/sum_received(/bytes)?": (
        "what the other end is said to have received: it says so itself"
    ),
    r"flow-[01]\.server\.json/end/sum_sent(/bytes)?": "likewise",
    r"flow-2\.\w+\.json/(started_s|streams/0/(port|samples(/.*)?))": "for the tables",
    r"flow-2\.server\.json/streams/0/(established_s|ended_s)": "the sender's tell how long it was",
    r"flow-2\.\w+\.json/error": "words of its own, with which any failure is data",
    r"preflight\.json/burst/(refills_from|payload_bytes)": "how it was sent, which was decided before",
    r"preflight\.json/burst/arrivals/\d": "one packet of a thousand may be lost",
    r"preflight\.json/burst/queues_at_peak/[01](/(kind|handle|dev|root))?": "not the bottleneck's queue",
    r"preflight\.json/burst/queues_at_peak/\d/(handle|root|refcnt|options(/.*)?|bytes|overlimits|requeues)": (
        "not how full it is"
    ),
    r"\w+\.json/.*/stderr": "words that come with an answer whose exit status is good",
    r"readback\.json/qdisc.*/stdout/\d+/(handle|root|refcnt|parent)": (
        "it is looked up by its device and kind"
    ),
    r"readback\.json/qdisc.*/stdout/\d+/options/(burst_raw|lat|ecn|gap)": "follows from what is compared",
    r"readback\.json/qdisc.*/stdout/\d+/options/seed": "netem draws another when the flows begin",
    r"readback\.json/qdisc.*/stdout/\d+/options/.*/(jitter|correlation)": (
        "pings and the count of losses tell them"
    ),
    r"readback\.json/qdisc\.s1/stdout/[01](/(kind|dev|options))?": "neither shapes nor delays",
    r"readback\.json/qdisc\.w1/stdout/[0236](/(kind|dev|options(/.*)?))?": "neither delays nor loses",
}
"""Keys that no check reads, each with the reason."""


def is_evidence(name, path):
    place = "/".join([name, *map(str, path)])
    return not any(re.fullmatch(pattern, place) for pattern in NO_EVIDENCE_WITHIN)


def at(document, path):
    for key in path:
        document = document[key]
    return document


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".json")])
def test_no_key_can_be_left_out_or_be_of_another_type(raw, name):
    document = json.loads((raw / name).read_text(encoding="utf-8"))
    believed = []
    for path in filter(lambda path: is_evidence(name, path), places(document)):
        for new in INSTEAD:
            if new is DELETED or new != at(document, path):
                (raw / name).write_text(json.dumps(put(document, path, new)), encoding="utf-8")
                if outcome(raw) == "certified":
                    believed.append((path, "deleted" if new is DELETED else new))
    assert believed == []


def answers_changed(raw, name, stdout):
    """What comes of a cell one of whose answers is another."""
    told = json.loads((RAW / "readback.json").read_text(encoding="utf-8"))
    (raw / "readback.json").write_text(json.dumps(put(told, (name, "stdout"), stdout)), encoding="utf-8")
    return outcome(raw)


ANSWERS = {
    name: answer["stdout"] for name, answer in json.loads((RAW / "readback.json").read_text("utf-8")).items()
}
LINES = re.compile(
    r"(net\.|/sys/module/fab_bbr/|(tcp-segmentation|generic-segmentation|generic-receive|large-receive)-offload)"
)
"""Of sysctl, of the module and of ethtool: what was set."""


@pytest.mark.parametrize("name", [name for name in ANSWERS if name.startswith("qdisc")])
def test_no_key_of_what_tc_tells_can_be_left_out_or_be_of_another_type(raw, name):
    document = json.loads(ANSWERS[name])
    believed = [
        (path, new)
        for path in places(document)
        if is_evidence("readback.json", (name, "stdout", *path))
        for new in INSTEAD
        if answers_changed(raw, name, json.dumps(put(document, path, new))) == "certified"
    ]
    assert believed == []


@pytest.mark.parametrize("name", [name for name in ANSWERS if re.match("sysctl|offloads|fab_bbr", name)])
def test_no_line_about_a_setting_can_be_left_out(raw, name):
    lines = ANSWERS[name].splitlines(keepends=True)
    assert any(LINES.match(line) for line in lines)
    believed = [
        line
        for line in filter(LINES.match, lines)
        if answers_changed(raw, name, ANSWERS[name].replace(line, "")) == "certified"
    ]
    # gso stays on at hosts: it is off where packets are dropped or counted.
    assert [line for line in believed if not (name[9:11] in ("h1", "h2") and "generic-seg" in line)] == []


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("stdout", ["", "[]", "{}", "Segmentation fault"])
def test_an_answer_that_says_nothing_is_not_believed(raw, name, stdout):
    if stdout or ANSWERS[name]:
        assert answers_changed(raw, name, stdout) != "certified"


# In a run


class Replay:
    """Leaves the golden files as every cell's, but for one that it spoils."""

    def __init__(self, spoil):
        self.spoil = spoil

    testbed = GUEST

    def with_kernel(self, kernel):
        assert kernel is None
        return self.testbed

    def execute(self, task):
        shutil.copytree(RAW, task.work / "raw", dirs_exist_ok=True)
        if task.seed == CELL.seed:
            self.spoil(task.work / "raw")
        return Report(wall_s=0.1, clock_s=2.0)

    def close(self):
        pass


def without_counters(raw):
    """``ip -s -j link`` of an old iproute2."""
    file = raw / "counters.after.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"stats64"', '"stats"'), encoding="utf-8")


def crashed(raw):
    """Every client of iperf3 crashed."""
    records = json.loads((raw / "flows.json").read_text(encoding="utf-8"))
    (raw / "flows.json").write_text(
        json.dumps([one | {"client_exit": -11} for one in records]), encoding="utf-8"
    )


SPOILT = [
    (without_counters, "raw/counters.after.json, from ip -s -j link: .*stats64: Field required"),
    (
        lambda raw: (raw / "sockets.h1.txt").write_bytes(b"\xff"),
        "raw/sockets.h1.txt, from ss: not UTF-8 at byte 0",
    ),
    (lambda raw: (raw / "preflight.json").write_bytes(b"[]"), "raw/preflight.json, from the agent: "),
    (crashed, "the client of flow 0 was ended by signal 11"),
]


@pytest.mark.parametrize(("spoil", "reason"), SPOILT)
def test_a_cell_whose_evidence_cannot_be_read_is_put_aside_and_the_others_go_on(tmp_path, spoil, reason):
    other = CELL.model_copy(update={"id": "r2", "repetition": 2, "seed": CELL.seed + 1})
    folder = create(tmp_path / "run", CELL, other, backend="guest", clock="virtual")
    summary = execute(folder, (CELL, other), Replay(spoil), jobs=1, listen=lambda _: None)
    assert summary.certified == ["r2"]
    assert re.search(reason, summary.failed["r1"])
    aside = folder.path / "failed" / "r1"
    assert (aside / "reason.txt").read_text(encoding="utf-8") == summary.failed["r1"] + "\n"
    assert (aside / "raw" / "readback.json").exists()
    assert not folder.has("r1")
