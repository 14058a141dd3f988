"""``ss -tinmOH`` → columns, at hundreds of thousands of sockets per second on one core.

The text is taken in chunks, so memory does not grow with the archive. In each chunk numpy finds the runs of
digits and their values; what is left of a line without them is its skeleton, which
:mod:`fabbbr_analysis.parse.ss_layout` reads once. A column is then one gather over all lines of the chunk.

Also read: the form of two lines per socket (without ``-O``) and headers (without ``-H``). Unknown tokens are
counted in ``unparsed_fields``; a line that is no socket is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fabbbr.errors import ParseError
from fabbbr_analysis.parse.ss_layout import COLUMNS, NUMBER, Layout, is_no_socket, layout_of

CHUNK_BYTES = 1 << 19
"""What to hand over at a time: it spreads the cost of a numpy call, and its arrays fit the caches."""

MAX_DIGITS = 15
"""Of one number, with its fraction: 10^15 < 2^53, so that every value is exact as a float too. A longer
number is damage; its column is null and it counts as an unparsed field."""

_LABELS = ("state", "cca")
SCHEMA = pa.schema(
    [
        *((label, pa.dictionary(pa.int32(), pa.string())) for label in _LABELS),
        *((column.name, pa.float64() if column.decimal else pa.int64()) for column in COLUMNS),
        ("app_limited", pa.bool_()),
        ("unparsed_fields", pa.int64()),
    ]
)

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Ints: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]

_PLACEHOLDER, _DROPPED = ord(NUMBER), 0xFF
_RESERVED = (bytes([_PLACEHOLDER]), bytes([_DROPPED]))
"""Bytes that are never in what ss prints, so stand for something else while a chunk is taken apart."""
_CONTINUING = (b"", b" ", b"\t")
"""What may follow a newline inside a socket; nothing, as long as the next chunk has not been seen."""
_FRONT = b"\n" * 16
"""Put before each chunk, so that 16 bytes can be read back from the end of any number."""
_MAX_LAYOUTS = 1 << 14
"""Skeletons remembered; beyond it (a capture with ``-e`` has a cookie in each line) they are learnt anew."""
_DIGIT_MASKS = np.array(
    [0, *((0xFFFFFFFFFFFFFFFF << 8 * (8 - k)) & 0xFFFFFFFFFFFFFFFF for k in range(1, 9))], "<u8"
)
"""By number of digits: keeps the last so many bytes of a little-endian word."""
_POWERS_OF_TEN = 10 ** np.arange(MAX_DIGITS + 1, dtype=np.int64)


def _membership(members: bytes) -> _Flags:
    table = np.zeros(256, dtype=np.bool_)
    table[np.frombuffer(members, dtype=np.uint8)] = True
    return table


_WORD_BYTES = _membership(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-")
_CLOSING_BYTES = _membership(b",)")


def parse_ss(chunks: Iterable[bytes], *, source: str) -> Iterator[pa.RecordBatch]:
    """Sockets in the order of the text, as batches of :data:`SCHEMA`.

    ``chunks`` may be cut anywhere. Raises ParseError naming ``source`` and the line.
    """
    _keep_freed_memory()
    layouts = _Layouts()
    lines_before = 0
    for text in _whole_sockets(chunks):
        if len(layouts) > _MAX_LAYOUTS:
            layouts = _Layouts()
        scan = _scan(_cleaned(text))
        try:
            yield _batch(scan, layouts)
        except _NoSocketError as error:
            line = lines_before + _raw_line(text, error.ordinal)
            message = (
                f"{source}, line {line}: {error.skeleton[:60]!r} has no state, queues and "
                f"addresses, so it is no socket of ss -tinm; remove the cell and run it again"
            )
            raise ParseError(message) from None
        lines_before += scan.lines


def _keep_freed_memory() -> None:
    """Let glibc reuse large blocks, a fifth of the time otherwise goes into page faults.

    At first it returns every block above 128 kB to the kernel; freeing one larger block raises that threshold
    to its size, up to 32 MiB (mallopt(3), M_MMAP_THRESHOLD). The block is never touched, so costs nothing.
    """
    np.empty(31 << 20, dtype=np.uint8)


class _NoSocketError(Exception):
    """The chunk's line ``ordinal`` (from 0, continuation lines not counted) is no socket."""

    def __init__(self, ordinal: int, skeleton: str) -> None:
        super().__init__(ordinal)
        self.ordinal = ordinal
        self.skeleton = skeleton.replace(NUMBER, "0")


def _whole_sockets(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut before the last line that starts a socket: what follows it may continue it.

    Each byte is looked at once and joined once, however far the next cut is away.
    """
    kept: list[bytes] = []
    for chunk in chunks:
        at_seam = bool(kept) and kept[-1].endswith(b"\n") and chunk[:1] not in _CONTINUING
        cut = _last_start(chunk) or (0 if at_seam else None)
        if cut is None:
            kept.append(chunk)
        else:
            yield b"".join((*kept, chunk[:cut]))
            kept = [chunk[cut:]]
    rest = b"".join(kept)
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def _last_start(chunk: bytes) -> int | None:
    """Where the last line that surely starts a socket begins; None without such a line after the first."""
    newline = chunk.rfind(b"\n")
    while newline >= 0 and chunk[newline + 1 : newline + 2] in _CONTINUING:
        newline = chunk.rfind(b"\n", 0, newline)
    return newline + 1 if newline >= 0 else None


def _cleaned(text: bytes) -> bytes:
    """Make all blanks alike, and free the bytes that stand for something else here."""
    text = text.replace(b"\t", b" ")
    for reserved in _RESERVED:
        text = text.replace(reserved, b"?")
    return text


def _raw_line(text: bytes, ordinal: int) -> int:
    starts = (
        number
        for number, line in enumerate(text.split(b"\n"), start=1)
        if number == 1 or line[:1] not in (b" ", b"\t")
    )
    return next(number for index, number in enumerate(starts) if index == ordinal)


class _Layouts:
    """The layouts met so far, as tables with a row per layout."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}
        self._texts: tuple[dict[str, int], ...] = tuple({} for _ in _LABELS)
        self.labels: _Ints = np.zeros((0, len(_LABELS)), dtype=np.int64)
        """Index of each label in its ``texts``; -1 for none."""
        self.wholes: _Ints = np.zeros((0, len(COLUMNS)), dtype=np.int64)
        """Ordinal of each column's number in its line; -1 where the column is absent."""
        self.fractions: _Ints = self.wholes
        self.factors: _Ints = self.wholes
        self.has_fraction: _Flags = np.zeros(len(COLUMNS), dtype=np.bool_)
        """Whether any layout has a fraction, or a unit prefix, in the column."""
        self.app_limited: _Flags = np.zeros(0, dtype=np.bool_)
        self.unparsed: _Ints = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def texts(self, label: int) -> list[str]:
        """Return what the indices in column ``label`` of ``labels`` stand for."""
        return list(self._texts[label])

    def ids(self, skeletons: list[bytes]) -> _Ints:
        """Return the row of each line's layout; -1 for a blank line or a header."""
        try:
            return self._known(skeletons)
        except KeyError:
            self._learn(skeletons)
        return self._known(skeletons)

    def _known(self, skeletons: list[bytes]) -> _Ints:
        return np.fromiter(map(self._ids.__getitem__, skeletons), dtype=np.int64, count=len(skeletons))

    def _learn(self, skeletons: list[bytes]) -> None:
        learnt: list[Layout] = []
        for ordinal, skeleton in enumerate(skeletons):
            if skeleton in self._ids:
                continue
            text = skeleton.decode("latin-1")
            if is_no_socket(text):
                self._ids[skeleton] = -1
                continue
            layout = layout_of(text)
            if layout is None:
                raise _NoSocketError(ordinal, text)
            self._ids[skeleton] = len(self.unparsed) + len(learnt)
            learnt.append(layout)
        if learnt:
            self._extend(learnt)

    def _extend(self, learnt: list[Layout]) -> None:
        size = (len(learnt), len(COLUMNS))
        wholes, fractions = np.full(size, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
        factors = np.ones(size, dtype=np.int64)
        for row, layout in enumerate(learnt):
            for column, place in layout.places.items():
                wholes[row, column] = place.whole
                factors[row, column] = place.factor
                if place.fraction is not None:
                    fractions[row, column] = place.fraction
        labels = [[self._code(0, layout.state), self._code(1, layout.cca)] for layout in learnt]
        self.labels = np.concatenate([self.labels, np.array(labels, dtype=np.int64)])
        self.wholes = np.concatenate([self.wholes, wholes])
        self.fractions = np.concatenate([self.fractions, fractions])
        self.factors = np.concatenate([self.factors, factors])
        self.has_fraction |= (fractions >= 0).any(axis=0) | (factors > 1).any(axis=0)
        flags = np.array([layout.app_limited for layout in learnt])
        self.app_limited = np.concatenate([self.app_limited, flags])
        unparsed = np.array([layout.unparsed_fields for layout in learnt], dtype=np.int64)
        self.unparsed = np.concatenate([self.unparsed, unparsed])

    def _code(self, label: int, text: str | None) -> int:
        if text is None:
            return -1
        texts = self._texts[label]
        return texts.setdefault(text, len(texts))


@dataclass(frozen=True, kw_only=True)
class _Scan:
    """The numbers of a chunk, and its lines without them."""

    values: _Ints
    """-1 for a number of more than MAX_DIGITS; one more entry at the end, -1, for absent numbers."""
    digits: _Ints
    has_long: bool
    """Whether some number has more than MAX_DIGITS."""
    first: _Ints
    """Index of the first number at or after the start of each line."""
    skeletons: list[bytes]
    lines: int
    """Before the two lines of a socket were joined."""


def _scan(text: bytes) -> _Scan:
    data, line_ends = _lines(text)
    lines = len(line_ends) - 1
    if (data[line_ends[1:-1] + 1] == ord(" ")).any():
        data, line_ends = _lines(text.replace(b"\n ", b" "))
    is_digit = (data - ord("0")) < 10
    starts = np.flatnonzero(is_digit[1:] > is_digit[:-1]) + 1
    ends = np.flatnonzero(is_digit[1:] < is_digit[:-1]) + 1
    in_word = _WORD_BYTES.take(data[starts - 1]) & ~_CLOSING_BYTES.take(data[ends])
    word_digits = _spans(starts[in_word], ends[in_word])
    starts, ends = starts[~in_word], ends[~in_word]
    digits = ends - starts

    is_blank = data == ord(" ")
    repeated = (is_digit[1:] & is_digit[:-1]) | (is_blank[1:] & is_blank[:-1])
    shaped = np.maximum(data, is_digit * np.uint8(_PLACEHOLDER))
    np.maximum(shaped[1:], repeated * np.uint8(_DROPPED), out=shaped[1:])
    shaped[word_digits] = data[word_digits]
    return _Scan(
        values=np.append(_values(data, ends, digits), -1),
        digits=np.append(digits, 0),
        has_long=bool((digits > MAX_DIGITS).any()),
        first=np.searchsorted(starts, line_ends[:-1]),
        skeletons=shaped.tobytes().translate(None, bytes([_DROPPED])).split(b"\n")[len(_FRONT) : -1],
        lines=lines,
    )


def _lines(text: bytes) -> tuple[_Bytes, _Ints]:
    """Return the text behind its front, and where its lines end, the front's last one first."""
    data = np.frombuffer(_FRONT + text, dtype=np.uint8)
    return data, np.flatnonzero(data == ord("\n"))[len(_FRONT) - 1 :]


def _spans(starts: _Ints, ends: _Ints) -> _Ints:
    """All positions in the half-open spans."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def _values(data: _Bytes, ends: _Ints, digits: _Ints) -> _Ints:
    """Read the numbers that end before ``ends``; -1 for more than MAX_DIGITS."""
    values = _up_to_eight_digits(data, ends, np.minimum(digits, 8))
    long = np.flatnonzero(digits > 8)
    upper = _up_to_eight_digits(data, ends[long] - 8, np.minimum(digits[long] - 8, 8))
    values[long] += upper * 10**8
    values[digits > MAX_DIGITS] = -1
    return values


def _up_to_eight_digits(data: _Bytes, ends: _Ints, digits: _Ints) -> _Ints:
    """Eight bytes as one little-endian integer, whose halves are then added pairwise: 8 → 4 → 2 → 1 numbers.

    The multiplication by ``1 + (10**k << 8*k)`` adds 10^k times each lower (more
    significant) field to the next.
    """
    window = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    word = window[ends - 8] & np.uint64(0x0F0F0F0F0F0F0F0F)
    word &= _DIGIT_MASKS.take(digits)
    word *= np.uint64(1 + (10 << 8))
    word >>= np.uint64(8)
    word &= np.uint64(0x00FF00FF00FF00FF)
    word *= np.uint64(1 + (100 << 16))
    word >>= np.uint64(16)
    word &= np.uint64(0x0000FFFF0000FFFF)
    word *= np.uint64(1 + (10_000 << 32))
    word >>= np.uint64(32)
    return word.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The sockets of a chunk: for each, its layout and the index of its first number."""

    scan: _Scan
    layouts: _Layouts
    ids: _Ints
    first: _Ints

    def labels(self, label: int) -> pa.DictionaryArray:
        codes = self.layouts.labels[self.ids, label].astype(np.int32)
        indices = pa.array(codes, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(self.layouts.texts(label), pa.string()))

    def column(self, index: int, places: _Ints) -> tuple[npt.NDArray[np.float64] | _Ints, _Flags]:
        """Values of a column and where they are null; ``places`` are indices of numbers, -1 for absent."""
        whole = self.scan.values[places]
        null = whole < 0
        column = COLUMNS[index]
        if not self.layouts.has_fraction[index]:
            return (whole / column.per_unit if column.decimal else whole), null
        fractions = self.layouts.fractions[self.ids, index]
        fractions = np.where(fractions >= 0, fractions + self.first, -1)
        decimals = self.scan.digits[fractions]
        null |= self.scan.digits[places] + decimals > MAX_DIGITS
        scale = _POWERS_OF_TEN[np.minimum(decimals, MAX_DIGITS)]
        digits = whole * scale + np.maximum(self.scan.values[fractions], 0)
        factors = self.layouts.factors[self.ids, index]
        # One division of exact integers: the float is the one nearest to the decimal that was printed.
        return digits * factors / (scale * column.per_unit), null


def _batch(scan: _Scan, layouts: _Layouts) -> pa.RecordBatch:
    ids = layouts.ids(scan.skeletons)
    is_socket = ids >= 0
    rows = _Rows(scan=scan, layouts=layouts, ids=ids[is_socket], first=scan.first[is_socket])
    places = layouts.wholes[rows.ids].T
    places = np.where(places >= 0, places + rows.first, -1)
    unparsed = layouts.unparsed[rows.ids]
    arrays = [rows.labels(label) for label in range(len(_LABELS))]
    for index in range(len(COLUMNS)):
        values, null = rows.column(index, places[index])
        arrays.append(pa.array(values, mask=null))
        if layouts.has_fraction[index] or scan.has_long:
            unparsed += null & (places[index] >= 0)
    arrays += [pa.array(layouts.app_limited[rows.ids]), pa.array(unparsed)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
