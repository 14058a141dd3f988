"""The grammar of one ``ss -tinm`` line, read once per *skeleton*.

A skeleton is a line in which every number is replaced by :data:`NUMBER` and every run of blanks by one:
``ESTAB # # #.#.#.#:# ... cwnd:# rtt:#.#/#.#``. All lines of one skeleton have the same numbers in the same
order, so a :class:`Layout` (which number is which column) serves them all, and a capture has far fewer
skeletons than lines. Digits that belong to a word (``bbr2``, ``FIN-WAIT-1``) stay.

Source of the grammar: ``tcp_stats_print`` in iproute2's ``misc/ss.c``, versions 5.0 to 6.x. Zero and
unset values are not printed by ss, so their column is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

NUMBER = "\xfe"
"""Stands for one run of digits; a character that ss never prints (bytes are read as Latin-1)."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A numeric column: where its number stands in a token, and how it becomes the unit of the column."""

    name: str
    decimal: bool = False
    """Whether the text may have a fraction or a unit prefix; such a column is a float."""
    per_unit: int = 1
    """The printed unit counts this many to the unit of the column: 1000 for ms printed, s wanted."""


_WHOLE = f"({NUMBER})"
_DECIMAL = rf"({NUMBER}(?:\.{NUMBER})?)"
_RATE = rf"({NUMBER}(?:\.{NUMBER})?[KMGT]?)bps"


@dataclass(frozen=True, kw_only=True)
class _Token:
    pattern: re.Pattern[str]
    columns: tuple[Column, ...]


def _token(pattern: str, *columns: Column) -> _Token:
    return _Token(pattern=re.compile(pattern), columns=columns)


def _count(name: str) -> _Token:
    return _token(_WHOLE, Column(name=name))


def _rate(name: str) -> Column:
    return Column(name=name, decimal=True)


def _milliseconds(name: str) -> Column:
    return Column(name=name, decimal=True, per_unit=1000)


_BUSY_SHARE = rf"(?:\({NUMBER}\.{NUMBER}%\))?"

_TOKENS: Mapping[str, _Token] = {
    "rtt": _token(f"{_DECIMAL}/{_DECIMAL}", _milliseconds("rtt_s"), _milliseconds("rttvar_s")),
    "minrtt": _token(_DECIMAL, _milliseconds("min_rtt_s")),
    "mss": _count("mss_bytes"),
    "cwnd": _count("cwnd_segments"),
    "ssthresh": _count("ssthresh_segments"),
    "bytes_sent": _count("bytes_sent"),
    "bytes_retrans": _count("bytes_retrans"),
    "bytes_acked": _count("bytes_acked"),
    "bytes_received": _count("bytes_received"),
    "data_segs_out": _count("sent_segments"),
    "send": _token(_RATE, _rate("send_rate_bps")),
    "pacing_rate": _token(rf"{_RATE}(?:/{NUMBER}(?:\.{NUMBER})?[KMGT]?bps)?", _rate("pacing_rate_bps")),
    "delivery_rate": _token(_RATE, _rate("delivery_rate_bps")),
    "delivered": _count("delivered_segments"),
    "delivered_ce": _count("delivered_ce_segments"),
    "busy": _token(f"{_WHOLE}ms", _milliseconds("busy_s")),
    "rwnd_limited": _token(f"{_WHOLE}ms{_BUSY_SHARE}", _milliseconds("rwnd_limited_s")),
    "sndbuf_limited": _token(f"{_WHOLE}ms{_BUSY_SHARE}", _milliseconds("sndbuf_limited_s")),
    "unacked": _count("unacked_segments"),
    "retrans": _token(
        f"{_WHOLE}/{_WHOLE}", Column(name="retrans_in_flight_segments"), Column(name="retrans_segments")
    ),
    "lost": _count("lost_segments"),
    "dsack_dups": _count("dsack_segments"),
    "sacked": _count("sacked_segments"),
    "notsent": _count("notsent_bytes"),
    "bbr.bw": _token(_RATE, _rate("bbr_bw_bps")),
    "bbr.mrtt": _token(_DECIMAL, _milliseconds("bbr_min_rtt_s")),
    "bbr.pacing_gain": _token(_DECIMAL, Column(name="bbr_pacing_gain", decimal=True)),
    "bbr.cwnd_gain": _token(_DECIMAL, Column(name="bbr_cwnd_gain", decimal=True)),
}

_IGNORED = frozenset(
    {"skmem", "wscale", "rto", "backoff", "ato", "qack", "pmtu", "rcvmss", "advmss", "segs_out", "segs_in"}
    | {"data_segs_in", "dctcp", "lastsnd", "lastrcv", "lastack"}
    | {
        "fackets",
        "reordering",
        "reord_seen",
        "rcv_rtt",
        "rcv_space",
        "rcv_ssthresh",
        "rcv_ooopack",
        "snd_wnd",
    }
    | {"rcv_wnd", "rehash", "max_pacing_rate", "timer"}
)
"""Tokens that are known and have no column."""

_FLAGS = frozenset({"ts", "sack", "ecn", "ecnseen", "fastopen", "bidir"})
_SPACED_RATES = ("send", "pacing_rate", "delivery_rate", "max_pacing_rate")
"""Keys that are followed by a blank instead of a colon."""

_HEAD_COLUMNS = tuple(
    Column(name=name) for name in ("receive_queue_bytes", "send_queue_bytes", "local_port", "peer_port")
)
COLUMNS: tuple[Column, ...] = _HEAD_COLUMNS + tuple(
    column for token in _TOKENS.values() for column in token.columns
)
"""All numeric columns, in the order of ``Layout.numbers``."""
_INDEX = {column.name: index for index, column in enumerate(COLUMNS)}

_HEAD = re.compile(
    rf"(?P<state>[A-Z][A-Z0-9-]*) (?P<receive>{NUMBER}) (?P<send>{NUMBER}) "
    rf"\S*:(?P<local>{NUMBER}|\*) \S*:(?P<peer>{NUMBER}|\*)(?= |$)"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_KEYED = re.compile(r"([A-Za-z][A-Za-z0-9_]*):(.*)", re.DOTALL)
_HEADER = "State Recv-Q "
_PREFIX = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, kw_only=True)
class FieldPlace:
    """Where a value stands: the ordinal of its number in the line, of its fraction, and its unit prefix."""

    whole: int
    fraction: int | None
    factor: int


@dataclass(kw_only=True)
class Layout:
    """What the numbers and words of a skeleton mean."""

    state: str
    cca: str | None = None
    app_limited: bool = False
    places: dict[int, FieldPlace] = field(default_factory=dict)
    """Index in :data:`COLUMNS` → place."""
    unparsed_fields: int = 0


def is_no_socket(skeleton: str) -> bool:
    """Whether the line is blank or the header of ``ss`` without ``-H``."""
    return not skeleton.strip() or skeleton.startswith(_HEADER)


def layout_of(skeleton: str) -> Layout | None:
    """Read a skeleton; None when it has no state, queues and addresses, so is no socket."""
    head = _HEAD.match(skeleton)
    if head is None:
        return None
    layout = Layout(state=head["state"])
    for group, column in zip(("receive", "send", "local", "peer"), _HEAD_COLUMNS, strict=True):
        if head[group] != "*":
            _put(layout, column, skeleton, head.span(group))
    for key, value, start in _tokens(skeleton, head.end()):
        _read(layout, skeleton, (key, value, start))
    return layout


def _put(layout: Layout, column: Column, skeleton: str, span: tuple[int, int]) -> None:
    text = skeleton[slice(*span)]
    before = skeleton.count(NUMBER, 0, span[0])
    layout.places[_INDEX[column.name]] = FieldPlace(
        whole=before,
        fraction=before + 1 if "." in text else None,
        factor=_PREFIX.get(text[-1], 1),
    )


def _tokens(skeleton: str, start: int) -> Iterator[tuple[str | None, str, int]]:
    """Each token as key (None for a bare word), value and where the value starts; bbr blocks are opened."""
    words = [(match[0], match.start()) for match in re.finditer(r"[^ ]+", skeleton[start:])]
    spaced: str | None = None
    for word, offset in words:
        at = start + offset
        if spaced is not None:
            yield spaced, word, at
            spaced = None
        elif word in _SPACED_RATES:
            spaced = word
        elif (keyed := _KEYED.fullmatch(word)) is None:
            yield None, word, at
        elif "bbr" in keyed[1] and keyed[2].startswith("("):
            yield from _block(keyed[2], at + keyed.start(2))
        else:
            yield keyed[1], keyed[2], at + keyed.start(2)
    if spaced is not None:
        yield spaced, "", start


def _block(text: str, start: int) -> Iterator[tuple[str | None, str, int]]:
    """Yield the inside of ``bbr:(bw:#bps,mrtt:#.#)``; a block that was cut short is one unknown token."""
    if not text.endswith(")"):
        yield None, text, start
        return
    for part in re.finditer(r"[^,()]+", text):
        key, colon, value = part[0].partition(":")
        yield (f"bbr.{key}" if colon else None), value, start + part.start() + len(key) + 1


def _read(layout: Layout, skeleton: str, token: tuple[str | None, str, int]) -> None:
    key, value, start = token
    if key is None:
        _read_word(layout, value)
        return
    if key in _IGNORED:
        return
    known = _TOKENS.get(key)
    match = known.pattern.fullmatch(value) if known else None
    if known is None or match is None or _INDEX[known.columns[0].name] in layout.places:
        layout.unparsed_fields += 1
        return
    for group, column in enumerate(known.columns, start=1):
        first, last = match.span(group)
        _put(layout, column, skeleton, (start + first, start + last))


def _read_word(layout: Layout, word: str) -> None:
    """Note a flag, or the name of the congestion control: the first other word, before any number."""
    if word == "app_limited":
        layout.app_limited = True
    elif word in _FLAGS:
        return
    elif layout.cca is None and _WORD.fullmatch(word) and max(layout.places, default=0) < len(_HEAD_COLUMNS):
        layout.cca = word
    else:
        layout.unparsed_fields += 1
