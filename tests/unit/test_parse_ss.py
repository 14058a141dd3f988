"""The fast reader of ss against a slow one that is plainly right, on real captures and on made-up lines."""

from __future__ import annotations

import contextlib
import itertools
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import ParseError
from fabbbr_analysis.parse.ss import SCHEMA, parse_ss

GOLDEN = Path(__file__).parent.parent / "golden"
CAPTURES = sorted(GOLDEN.glob("sockets.*.txt"))


def parse(*chunks: bytes) -> list[dict]:
    return pa.Table.from_batches(parse_ss(chunks, source="capture"), SCHEMA).to_pylist()


# The reference: one regular expression a token, decimal arithmetic, no cleverness.

WHOLE, DECIMAL = "([0-9]+)", r"([0-9]+(?:\.[0-9]+)?)"
RATE = r"([0-9]+(?:\.[0-9]+)?[KMGT]?)bps"
SHARE = r"(?:\([0-9]+\.[0-9]+%\))?"
REFERENCE = {
    "rtt": (f"{DECIMAL}/{DECIMAL}", "rtt_s", "rttvar_s"),
    "minrtt": (DECIMAL, "min_rtt_s"),
    "mss": (WHOLE, "mss_bytes"),
    "cwnd": (WHOLE, "cwnd_segments"),
    "ssthresh": (WHOLE, "ssthresh_segments"),
    "bytes_sent": (WHOLE, "bytes_sent"),
    "bytes_retrans": (WHOLE, "bytes_retrans"),
    "bytes_acked": (WHOLE, "bytes_acked"),
    "bytes_received": (WHOLE, "bytes_received"),
    "data_segs_out": (WHOLE, "sent_segments"),
    "send": (RATE, "send_rate_bps"),
    "pacing_rate": (RATE + r"(?:/[0-9]+(?:\.[0-9]+)?[KMGT]?bps)?", "pacing_rate_bps"),
    "delivery_rate": (RATE, "delivery_rate_bps"),
    "delivered": (WHOLE, "delivered_segments"),
    "delivered_ce": (WHOLE, "delivered_ce_segments"),
    "busy": (WHOLE + "ms", "busy_s"),
    "rwnd_limited": (WHOLE + "ms" + SHARE, "rwnd_limited_s"),
    "sndbuf_limited": (WHOLE + "ms" + SHARE, "sndbuf_limited_s"),
    "unacked": (WHOLE, "unacked_segments"),
    "retrans": (f"{WHOLE}/{WHOLE}", "retrans_in_flight_segments", "retrans_segments"),
    "lost": (WHOLE, "lost_segments"),
    "dsack_dups": (WHOLE, "dsack_segments"),
    "sacked": (WHOLE, "sacked_segments"),
    "notsent": (WHOLE, "notsent_bytes"),
}
REFERENCE_BBR = {
    "bw": (RATE, "bbr_bw_bps"),
    "mrtt": (DECIMAL, "bbr_min_rtt_s"),
    "pacing_gain": (DECIMAL, "bbr_pacing_gain"),
    "cwnd_gain": (DECIMAL, "bbr_cwnd_gain"),
}
WITHOUT_COLUMN = re.findall(
    r"\w+",
    "skmem wscale rto backoff ato qack pmtu rcvmss advmss segs_out segs_in "
    "data_segs_in dctcp lastsnd lastrcv lastack fackets reordering reord_seen "
    "rcv_rtt rcv_space "
    "rcv_ssthresh rcv_ooopack snd_wnd rcv_wnd rehash max_pacing_rate timer",
)
HEAD = re.compile(r"([A-Z][A-Z0-9-]*) ([0-9]+) ([0-9]+) \S*:([0-9]+|\*) \S*:([0-9]+|\*)(?: (.*))?", re.DOTALL)
HEAD_COLUMNS = ("receive_queue_bytes", "send_queue_bytes", "local_port", "peer_port")
MILLISECONDS = {
    "rtt_s",
    "rttvar_s",
    "min_rtt_s",
    "busy_s",
    "rwnd_limited_s",
    "sndbuf_limited_s",
    "bbr_min_rtt_s",
}
SCALE = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def reference(text: str) -> list[dict]:
    """Raise ValueError for a line that is no socket."""
    joined = re.sub(r"\n[ \t]", " ", text).replace("\t", " ").replace("\xfe", "?").replace("\xff", "?")
    lines = [re.sub(" +", " ", line) for line in joined.split("\n")]
    return [reference_line(line) for line in lines if line.strip() and not line.startswith("State Recv-Q ")]


def reference_line(line: str) -> dict:
    head = HEAD.fullmatch(line)
    if head is None:
        raise ValueError(line)
    row: dict = dict.fromkeys(SCHEMA.names) | {"state": head[1], "app_limited": False, "unparsed_fields": 0}
    for column, value in zip(HEAD_COLUMNS, head.groups()[1:5], strict=True):
        if value != "*":
            put(row, column, value)
    words = [word for word in (head[6] or "").split(" ") if word]
    seen: set[str] = set()
    while words:
        word = words.pop(0)
        match = re.fullmatch(r"([A-Za-z][A-Za-z0-9_]*):(.*)", word, re.DOTALL)
        if word in ("send", "pacing_rate", "delivery_rate", "max_pacing_rate"):
            keyed(row, seen, word, words.pop(0) if words else "", REFERENCE)
        elif match is None:
            bare(row, seen, word)
        elif "bbr" in match[1] and match[2].startswith("("):
            block(row, seen, match[2])
        else:
            keyed(row, seen, match[1], match[2], REFERENCE)
    return row


def block(row: dict, seen: set[str], text: str) -> None:
    if not text.endswith(")"):
        row["unparsed_fields"] += 1
        return
    for part in re.findall(r"[^,()]+", text):
        key, colon, value = part.partition(":")
        keyed(row, seen, key if colon else "", value, REFERENCE_BBR)


def keyed(row: dict, seen: set[str], key: str, value: str, known: dict) -> None:
    if known is REFERENCE and key in WITHOUT_COLUMN:
        return
    pattern, *columns = known.get(key, ("(?!)", key))
    match = re.fullmatch(pattern, value)
    if match is None or columns[0] in seen:
        row["unparsed_fields"] += 1
        return
    seen.update(columns)
    for column, text in zip(columns, match.groups(), strict=True):
        put(row, column, text)


def bare(row: dict, seen: set[str], word: str) -> None:
    if word == "app_limited":
        row["app_limited"] = True
    elif word in ("ts", "sack", "ecn", "ecnseen", "fastopen", "bidir"):
        pass
    elif row["cca"] is None and not seen and re.fullmatch("[A-Za-z][A-Za-z0-9_-]*", word):
        row["cca"] = word
    else:
        row["unparsed_fields"] += 1


def put(row: dict, column: str, text: str) -> None:
    number, scale = (text[:-1], SCALE[text[-1]]) if text[-1] in SCALE else (text, 1)
    if sum(map(str.isdigit, number)) > 15:
        row["unparsed_fields"] += 1
        return
    value = Decimal(number) * scale / (1000 if column in MILLISECONDS else 1)
    row[column] = float(value) if pa.types.is_floating(SCHEMA.field(column).type) else int(value)


# Lines like those of ss, and some that are not.

numbers = st.one_of(st.integers(0, 99), st.integers(0, 10**13)).map(str)
small = st.integers(0, 10**6).map(str)
decimals = st.one_of(small, st.tuples(small, st.from_regex(r"[0-9]{1,6}", fullmatch=True)).map(".".join))
rates = st.one_of(
    numbers,
    decimals,
    st.builds("{}.{}{}".format, st.integers(0, 999), st.integers(0, 9), st.sampled_from("KMG")),
)


def field(template: str, *values: st.SearchStrategy) -> st.SearchStrategy[str]:
    return st.builds(template.format, *values)


TOKENS = st.one_of(
    *(field(key + ":{}", numbers) for key, (pattern, *_) in REFERENCE.items() if pattern == WHOLE),
    *(field(key + ":{}", numbers) for key in WITHOUT_COLUMN),
    field("rtt:{}/{}", decimals, decimals),
    field("minrtt:{}", decimals),
    field("retrans:{}/{}", numbers, numbers),
    field("{} {}bps", st.sampled_from(["send", "pacing_rate", "delivery_rate", "max_pacing_rate"]), rates),
    field("pacing_rate {}bps/{}bps", rates, rates),
    field("busy:{}ms", numbers),
    field("rwnd_limited:{}ms({}.{}%)", numbers, numbers, numbers),
    field("skmem:(r{},rb{},t0,tb{},f{},w0,o0,bl0,d{})", numbers, numbers, numbers, numbers, numbers),
    field("bbr:(bw:{}bps,mrtt:{},pacing_gain:{},cwnd_gain:{})", rates, decimals, decimals, decimals),
    field("bbr{}:(bw:{}bps,mrtt:{},phase:{},cwnd_gain:{})", small, rates, decimals, small, decimals),
    st.sampled_from(
        [
            "app_limited",
            "ts",
            "sack",
            "send",
            "cwnd:",
            "cwnd:x1",
            "bbr:(bw:1bps",
            "cwnd:-3",
            "what:ever",
            "a,b",
        ]
    ),
    st.text(st.characters(codec="latin-1", exclude_characters="\n"), min_size=1, max_size=8),
)
ADDRESSES = st.one_of(
    field("{}.0.0.{}:{}", st.integers(1, 255), st.integers(1, 255), small),
    field("[fd00:{}::{}]:{}", small, small, small),
    field("10.0.0.1%s1-eth{}:{}", st.integers(0, 20), small),
    field("[::ffff:10.0.0.{}]:{}", st.integers(1, 255), small),
    st.just("*:*"),
)
LINES = st.builds(
    lambda state, queues, pad, ends, cca, tokens: " ".join(
        [state, *queues, pad + ends[0], pad + ends[1], cca, *tokens]
    ),
    st.sampled_from(["ESTAB", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "CLOSE-WAIT", "SYN-SENT"]),
    st.tuples(numbers, numbers),
    st.sampled_from(["", "   "]),
    st.tuples(ADDRESSES, ADDRESSES),
    st.sampled_from(["", "cubic", "bbr", "bbr2", "bbr12", "fabbbr_2", "x-1"]),
    st.lists(TOKENS, max_size=12),
)


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_the_fast_reader_agrees_with_the_reference_on_real_captures(capture):
    expected = reference(capture.read_text("latin-1"))
    assert len(expected) >= 4
    assert parse(capture.read_bytes()) == expected


@given(st.lists(LINES, max_size=6))
def test_the_fast_reader_agrees_with_the_reference_on_any_line(lines):
    text = "".join(line + "\n" for line in lines)
    assert parse(text.encode("latin-1")) == reference(text)


@given(st.data())
def test_damaged_captures_give_what_the_reference_gives_or_a_parse_error(data):
    raw = bytearray(data.draw(st.sampled_from(CAPTURES)).read_bytes()[:4000])
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        expected = reference(damaged.decode("latin-1"))
    except ValueError:
        with pytest.raises(ParseError, match="capture, line"):
            parse(damaged)
    else:
        assert parse(damaged) == expected


@given(st.binary(max_size=200))
def test_any_bytes_give_rows_or_a_parse_error(raw):
    with contextlib.suppress(ParseError):
        parse(raw)


@given(st.lists(st.integers(0, 3000), max_size=8))
def test_where_chunks_are_cut_does_not_matter(cuts):
    text = (GOLDEN / "sockets.twoline.txt").read_bytes()
    edges = [0, *sorted(cuts), len(text)]
    assert parse(*(text[a:b] for a, b in itertools.pairwise(edges))) == parse(text)


def test_numbers_mean_what_ss_prints():
    line = (
        b"ESTAB 1 553752 10.0.1.1:32768 10.0.2.1:5201 skmem:(r0,rb131072) bbr2 wscale:10,10 "
        b"rto:208 rtt:5.687/0.501 "
        b"mss:1448 cwnd:10 bytes_sent:1619733 bbr2:(bw:19205144bps,mrtt:0.004,pacing_gain:1.25,cwnd_gain:2) "
        b"send 20369263bps pacing_rate 19.5Mbps delivered:829 app_limited busy:500ms retrans:1/282\n"
    )
    (row,) = parse(line)
    assert {key: value for key, value in row.items() if value is not None} == {
        "state": "ESTAB", "cca": "bbr2", "receive_queue_bytes": 1, "send_queue_bytes": 553752,
        "local_port": 32768,
        "peer_port": 5201, "rtt_s": 0.005687, "rttvar_s": 0.000501, "mss_bytes": 1448, "cwnd_segments": 10,
        "bytes_sent": 1619733, "bbr_bw_bps": 19205144.0, "bbr_min_rtt_s": 4e-6, "bbr_pacing_gain": 1.25,
        "bbr_cwnd_gain": 2.0, "send_rate_bps": 20369263.0, "pacing_rate_bps": 19.5e6,
        "delivered_segments": 829,
        "app_limited": True, "busy_s": 0.5, "retrans_in_flight_segments": 1, "retrans_segments": 282,
        "unparsed_fields": 0,
    }  # fmt: skip


def test_nothing_in_the_real_captures_is_unknown():
    assert {row["unparsed_fields"] for path in CAPTURES for row in parse(path.read_bytes())} == {0}


def test_byte_counters_of_a_real_connection_never_go_back():
    last: dict[tuple[int, int], dict] = {}
    for row in parse((GOLDEN / "sockets.rivals.a.txt").read_bytes()):
        ports = (row["local_port"], row["peer_port"])
        for counter in ("bytes_sent", "bytes_acked", "bytes_retrans"):
            before = last.get(ports, {}).get(counter) or 0
            assert before <= (row[counter] or 0)
        last[ports] = row
    assert len(last) >= 5


def test_a_number_too_long_to_be_exact_is_refused_and_counted():
    (row,) = parse(
        b"ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 reno cwnd:1234567890123456 rtt:123456789012345.6/1 "
        b"mss:999999999999999\n"
    )
    assert (row["cwnd_segments"], row["rtt_s"], row["mss_bytes"]) == (None, None, 999999999999999)
    assert row["unparsed_fields"] == 2


def test_an_error_names_the_line_of_the_file_even_with_two_lines_a_socket():
    text = (GOLDEN / "sockets.twoline.txt").read_bytes()
    wrong = text + b"no socket at all\n"
    with pytest.raises(ParseError, match=rf"capture, line {text.count(bytes([10])) + 1}: 'no socket"):
        parse(wrong[:100], wrong[100:])


def test_unknown_layouts_are_forgotten_before_they_fill_the_memory(monkeypatch):
    monkeypatch.setattr("fabbbr_analysis.parse.ss._MAX_LAYOUTS", 3)
    lines = [b"ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 reno %s cwnd:%d\n" % (b"x" * n, n) for n in range(1, 30)]
    assert [row["cwnd_segments"] for row in parse(*lines)] == list(range(1, 30))
