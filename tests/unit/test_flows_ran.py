"""A failed flow is data, a broken tool is an error: where the line is."""

import json
import shutil
from pathlib import Path

import pytest
from golden_cell import CELL, GOLDEN, RAW

from fabbbr.certify.carried import ran
from fabbbr.certify.evidence import Evidence
from fabbbr.errors import BackendError

REFUSED = (GOLDEN / "iperf3-refused.client.json").read_bytes()
INTERRUPTED = (GOLDEN / "iperf3-interrupted.client.json").read_bytes()
CUT = (GOLDEN / "iperf3-killed.server.json").read_bytes()[:900]
NO_LOSS = CELL.model_copy(
    update={"links": tuple(link.model_copy(update={"loss": None}) for link in CELL.links)}
)


def moved(name, key, count):
    """The report ``name`` with another sum."""
    document = json.loads((RAW / name).read_text(encoding="utf-8"))
    document["end"][key]["bytes"] = count
    return json.dumps(document).encode()


def sized(name, **changes):
    """A report of the flow of given bytes that says something else."""
    document = json.loads((RAW / name).read_text(encoding="utf-8"))
    sent = changes.pop("bytes", None)
    if sent is not None:
        document["streams"][0]["bytes"] = sent
    return json.dumps(document | changes).encode()


@pytest.fixture
def check(tmp_path):
    """The check of the golden cell whose flow's record or reports are others."""

    def check(flow=0, record=None, reports=None, cell=CELL):
        raw = Path(shutil.copytree(RAW, tmp_path / "raw"))
        records = json.loads((raw / "flows.json").read_text(encoding="utf-8"))
        records[flow] |= record or {}
        (raw / "flows.json").write_text(json.dumps(records), encoding="utf-8")
        for side, report in (reports or {}).items():
            (raw / f"flow-{flow}.{side}.json").write_bytes(report)
        return ran(cell, Evidence.read(raw))

    return check


DATA = {
    "the connection was refused": (0, {"client_exit": 1, "server_exit": -15},
                                   {"client": REFUSED, "server": b""}),
    "a client that overstayed was interrupted": (
        0, {"client_exit": -15, "timed_out": True}, {"client": INTERRUPTED},
    ),
    "an interrupted transfer": (
        2, {"client_exit": 1},
        {"client": sized("flow-2.client.json", bytes=9, error="interrupted by signal 15")},
    ),
    "nothing arrived on a path that loses packets": (
        0, {}, {"server": moved("flow-0.server.json", "sum_received", 0)},
    ),
    "a document that is printed twice, with words after it": (
        0, {}, {"client": (RAW / "flow-0.client.json").read_bytes() * 2 + b"iperf3: error\n"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DATA)
def test_a_flow_that_failed_and_says_so_is_data(check, what):
    flow, record, reports = DATA[what]
    assert check(flow, record, reports).passed


UNEXPLAINED = {
    "it carried nothing": (0, {}, {"client": moved("flow-0.client.json", "sum_sent", 0)}, "carried nothing"),
    "it ended with an error status": (0, {"client_exit": 1}, {}, "status 1 and does not say why"),
    "it is another program's report": (0, {}, {"client": sized("flow-2.client.json")}, "another program"),
    "it is the other end's report": (2, {}, {"client": sized("flow-2.server.json")}, "how much it carried"),
    "it carried less than asked": (
        2,
        {},
        {"server": sized("flow-2.server.json", bytes=9)},
        "9 B of 500000 B",
    ),
}


@pytest.mark.parametrize("what", UNEXPLAINED)
def test_a_flow_that_carried_nothing_and_does_not_say_why_is_not_certified(check, what):
    flow, record, reports, said = UNEXPLAINED[what]
    found = check(flow, record, reports)
    assert not found.passed
    assert f"flow {flow}: its " in found.measured
    assert said in found.measured


def test_nothing_arrived_where_nothing_is_lost_is_not_certified(check):
    report = moved("flow-0.server.json", "sum_received", 0)
    assert not check(0, {}, {"server": report}, cell=NO_LOSS).passed


BROKEN = {
    "the client crashed": (0, {"client_exit": -11}, {"client": b""},
                           "client of flow 0 was ended by signal 11"),
    "the client crashed after its report": (0, {"client_exit": -11}, {}, "signal 11"),
    "the client was killed before its time": (0, {"client_exit": -9}, {}, "signal 9"),
    "the server crashed": (1, {"server_exit": -6}, {"server": b""}, "server of flow 1 was ended by signal 6"),
    "the program is missing": (0, {"client_exit": 127}, {"client": b""}, "no report that can be read"),
    "the client printed words": (0, {"client_exit": 1}, {"client": b"iperf3: bad option"},
                                 "flow-0.client.json"),
    "the report was cut short": (0, {}, {"client": CUT}, "no report that can be read"),
    "the server left nothing though its client did": (0, {"server_exit": -9}, {"server": b""},
                                                      "flow-0.server.json"),
    "the agent did not wait for it": (0, {"client_exit": None}, {},
                                      "flows.json, from the agent: 0.client_exit"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_program_that_broke_is_an_error(check, what):
    flow, record, reports, said = BROKEN[what]
    with pytest.raises(BackendError, match=said):
        check(flow, record, reports)


def test_a_flow_that_the_agent_knows_nothing_of_is_an_error(check):
    with pytest.raises(BackendError, match="flow 0 is missing"):
        check(0, {"flow": 7}, {"client": b""})


@pytest.mark.parametrize("steps", [[], [{"at_s": 0.7, "done_s": 0.7}], [{"at_s": 0.5, "done_s": 0.5}] * 2])
def test_steps_that_were_not_carried_out_as_asked_are_not_certified(tmp_path, steps):
    raw = Path(shutil.copytree(RAW, tmp_path / "raw"))
    (raw / "steps.json").write_text(json.dumps(steps), encoding="utf-8")
    assert not ran(CELL, Evidence.read(raw)).passed
