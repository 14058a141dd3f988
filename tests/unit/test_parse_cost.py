"""Reading takes work in proportion to what is read, counted and not timed, however odd the text is."""

from __future__ import annotations

import contextlib
import json
import sys

import pytest

from fabbbr.errors import ParseError
from fabbbr_analysis.parse import iperf3, ss, tc, times, transfer

QDISC = b'[{"kind": "tbf"}]'
SOCKET = b"ESTAB 0 0 10.0.0.1:32768 10.0.0.2:5201 cubic cwnd:10\n"


class CountingDecoder(json.JSONDecoder):
    """Notes how many characters it was handed, each text object once."""

    handed: dict[int, str] = {}  # noqa: RUF012 - emptied by each test

    def raw_decode(self, s, idx=0):
        self.handed[id(s)] = s  # kept alive, so that no id comes again
        return super().raw_decode(s, idx)


@pytest.fixture
def handed(monkeypatch):
    monkeypatch.setattr(json, "JSONDecoder", CountingDecoder)
    CountingDecoder.handed.clear()
    return CountingDecoder.handed


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        pytest.param(iperf3.parse_iperf3, b"{}" * 1000, id="iperf3"),
        pytest.param(iperf3.parse_iperf3, b"{}  \n\t" * 1000, id="iperf3-with-blanks"),
        pytest.param(iperf3.parse_iperf3, b"{}" * 1000 + b"{" * 1000, id="iperf3-cut"),
        pytest.param(tc.parse_tc, QDISC * 1000, id="tc"),
        pytest.param(tc.parse_tc, b" ".join([QDISC] * 1000), id="tc-with-blanks"),
    ],
)
def test_values_glued_together_are_read_in_place(handed, parse, text):
    parse(text, source="raw")
    assert sum(len(each) for each in handed.values()) <= len(text)


class Chunk(bytes):
    """Counts the bytes that are copied when it is joined to what came before."""

    copied = 0

    def __radd__(self, before):
        Chunk.copied += len(before) + len(self)
        return bytes(before) + bytes(self)


@pytest.mark.parametrize(
    "line", [b"x", b"\n ", b"\n\t\n "], ids=["no line end", "continued", "continued twice"]
)
def test_a_socket_that_never_ends_is_not_joined_anew_with_each_chunk(line):
    chunks = [Chunk(line * (64 // len(line))) for _ in range(500)]
    Chunk.copied = 0
    assert b"".join(ss._whole_sockets(chunks)).strip() == b"".join(chunks).strip()
    assert Chunk.copied <= 2 * sum(map(len, chunks))


def steps(work):
    """How many lines of Python ``work`` runs."""
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(ParseError):
            work()
    finally:
        sys.settrace(before)
    return count


def sockets_of(text, size=512):
    return list(ss.parse_ss((text[at : at + size] for at in range(0, len(text), size)), source="raw"))


def letters(number):
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


READ = {
    "ss": lambda n: sockets_of(SOCKET * n),
    "ss, one line": lambda n: sockets_of(b"ESTAB 0 0 " + b"x" * 50 * n),
    "ss, a socket of many lines": lambda n: sockets_of(b"ESTAB 0 0 a:1 b:2" + b"\n cwnd:10" * n),
    "ss, many tokens": lambda n: sockets_of(SOCKET.replace(b"\n", b" cwnd:10" * n + b"\n")),
    "ss, colons": lambda n: sockets_of(b"ESTAB 0 0 " + b":" * 50 * n + b" \n"),
    "tc": lambda n: tc.parse_tc((QDISC + b"\n") * n, source="raw"),
    "tc, glued": lambda n: tc.parse_tc(QDISC * n, source="raw"),
    "times": lambda n: times.parse_times("1.0 1\n" * n, counted=True, source="raw"),
    "iperf3, glued": lambda n: iperf3.parse_iperf3(b"{}" * n, source="raw"),
    "iperf3, cut": lambda n: iperf3.parse_iperf3(b'{"intervals": [' + b'{"streams": []},' * n, source="raw"),
    "transfer": lambda n: transfer.parse_transfer(
        json.dumps(
            {"transfer": 1, "side": "send", "started_s": 0, "streams": [
                {"port": 1, "bytes": 1, "samples": [{"at_s": at, "bytes": at} for at in range(1, n)]}
            ]}
        ).encode(), b"", sources=("raw", "raw"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_twice_the_text_takes_twice_the_steps(name):
    steps(lambda: READ[name](1))  # what is done once
    once, twice = (steps(lambda n=n: READ[name](n)) for n in (500, 1000))
    assert twice <= 2.2 * once


def test_labels_are_found_without_a_search():
    """As many congestion controls as sockets: each was looked for among all that came before."""
    layouts = ss._Layouts()

    class Name(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

    for number in range(300):
        assert layouts._code(1, Name(letters(number))) == number
        assert layouts._code(1, Name(letters(number))) == number
    assert Name.compared < 3000
