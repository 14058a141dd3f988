"""What pings and UDP left behind: what the certificate says of it, and what the tables read."""

import json
import shutil
import struct
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from golden_cell import CELL, RAW

from fabbbr.agent.ping import _request
from fabbbr.certify import datagrams
from fabbbr.certify.carried import pinged
from fabbbr.certify.evidence import Evidence, TransferReport
from fabbbr.errors import BackendError, ParseError
from fabbbr.model import Datagrams, Flow, Ping
from fabbbr.ports import DATA_PORT, SERVER_PORT
from fabbbr.units import Duration, Rate
from fabbbr_analysis.parse.ping import parse_ping
from fabbbr_analysis.tables.connections import data_connections

SECOND = Duration(10**9)
PINGING = CELL.model_copy(
    update={
        "pings": (
            Ping(
                index=0, group="ping", sender="h1", receiver="h2", interval=SECOND, start=Duration(0),
                rtt=CELL.flows[0].rtt,
            ),
        )
    }
)  # fmt: skip


@pytest.fixture
def told(tmp_path):
    def told(text):
        raw = Path(shutil.copytree(RAW, tmp_path / "raw"))
        if text is not None:
            (raw / "ping-0.json").write_text(text, encoding="utf-8")
        (check,) = pinged(PINGING, Evidence.read(raw))
        return check

    return told


def document(samples, error=None):
    return json.dumps({"ping": 1, "error": error, "samples": samples})


def test_a_ping_that_was_answered_is_certified_lost_requests_or_not(told):
    check = told(document([[0.0, 0.02], [1.0, None]]))
    assert check.passed
    assert check.measured == "2 sent, 1 answered"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (document([[0.0, None]]), "1 sent, 0 answered"),
        (document([[0.0, 0.02]], error="No buffer space available"), "then No buffer space available"),
        (None, "the flows were over before it began"),
    ],
)
def test_a_ping_that_says_nothing_of_the_path_is_not(told, text, said):
    check = told(text)
    assert not check.passed
    assert said in check.measured


def test_a_ping_that_left_what_cannot_be_read_is_a_broken_tool(told):
    with pytest.raises(BackendError, match=r"raw/ping-0\.json, from the agent"):
        told('{"ping": 1, "error"')


def test_cells_without_pings_have_no_such_check():
    assert list(pinged(CELL, Evidence.read(RAW))) == []


def test_a_request_has_the_checksum_of_rfc_1071():
    words = struct.unpack("!32H", _request(0x4000, 7))
    total = sum(words)
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not what a ping prints"),
        (b'{"ping": 2, "samples": []}', "not what a ping prints"),
        (b'{"ping": 1, "samples": [[1.0, 0.1], [0.5, 0.1]]}', "never go back"),
        (b'{"ping": 1, "samples": [[1.0, -0.1]]}', "not positive"),
    ],
)
def test_samples_that_cannot_be_are_refused_with_their_file(text, said):
    with pytest.raises(ParseError, match=f"raw/ping-0.json: .*{said}"):
        parse_ping(text, source="raw/ping-0.json")


def test_an_unanswered_request_is_a_row_without_a_round_trip():
    table = parse_ping(document([[0.0, 0.02], [1.0, None]]).encode(), source="s")
    assert table.to_pydict() == {"t_s": [0.0, 1.0], "rtt_s": [0.02, None]}


UDP = Flow(
    index=0, group="udp", cca=None, sender="h1", receiver="h2", start=Duration(0), duration=SECOND,
    udp=Datagrams(rate=Rate(8 * 1514 * 100), packet_bytes=1500), rtt=SECOND,
)  # fmt: skip
"""A hundred datagrams."""


def of_datagrams(sent, received, error=None):
    def report(side, **counts):
        return TransferReport.model_validate(
            {"transfer": 1, "side": side, "error": error, "streams": (), "datagrams": counts}
        )

    prepared = SimpleNamespace(cell=SimpleNamespace(flows=(UDP,)), job=SimpleNamespace(nodes=(), cables=()))
    reports = {(0, "client"): report("send", sent=sent), (0, "server"): report("receive", received=received)}
    return list(datagrams.checks(prepared, SimpleNamespace(reports=reports)))


@pytest.mark.parametrize(
    ("sent", "received", "passes"), [(100, 100, True), (100, 99, False), (99, 99, False)]
)
def test_every_datagram_was_sent_and_none_is_missing_that_nobody_dropped(sent, received, passes):
    (check,) = of_datagrams(sent, received)
    assert check.passed is passes
    assert check.measured == f"{sent} sent, {received} received, {sent - received} missing"


def test_of_a_flow_that_failed_no_datagrams_are_compared():
    assert of_datagrams(50, 10, error="interrupted by signal 15") == []


def test_the_control_connection_of_udp_is_no_socket_of_its_flow():
    """Its acknowledgements are not the datagrams', nor its round trips."""
    tcp = CELL.flows[0].model_copy(update={"index": 0, "streams": 1})
    rate = Rate.parse("1 Mbit/s")
    udp = tcp.model_copy(update={"index": 1, "cca": None, "udp": Datagrams(rate=rate, packet_bytes=1500)})
    sockets = pa.table(
        {
            "local_port": [DATA_PORT, 40_000],
            "peer_port": [SERVER_PORT, SERVER_PORT + 1],
            "bytes_sent": [10**6, 200],
            "bytes_received": [0, 4],
        }
    )

    kept = data_connections(sockets, [tcp, udp])

    assert kept["flow"].to_pylist() == [0]
