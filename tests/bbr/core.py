"""The BBR core as a shared library: gcc builds it from what nodes and guests get, ctypes drives it.

The layout of its records is read from the core's header, and the compiler
confirms every offset and size of it.
"""

import ctypes
import enum
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "playbooks" / "roles" / "bbr" / "files"
UNKNOWN = INFINITE = 2**32 - 1
INFINITE_RATE = 2**64 - 1
GAIN_UNIT = 256
COMPILER_LIMIT_S = 120
FLAGS = ("-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
INTEGERS = {
    "bool": ctypes.c_bool,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
}


class Profile(enum.IntEnum):
    V2ALPHA = 0
    DRAFT01 = 1
    V3 = 2
    V1 = 3
    V1_CAP3 = 4


class State(enum.IntEnum):
    STARTUP = 0
    DRAIN = 1
    PROBE_BW_DOWN = 2
    PROBE_BW_CRUISE = 3
    PROBE_BW_REFILL = 4
    PROBE_BW_UP = 5
    PROBE_RTT = 6


class Acks(enum.IntEnum):
    INIT = 0
    REFILLING = 1
    PROBE_STARTING = 2
    PROBE_FEEDBACK = 3
    PROBE_STOPPING = 4


@dataclass(frozen=True, kw_only=True)
class Ack:
    """``struct fab_ack``: volumes in packets, times in µs; counters are taken modulo 2^32."""

    now_us: int = 0
    delivered: int = 0
    lost: int = 0
    in_flight: int = 0
    prior_in_flight: int = 0
    cwnd: int = 10
    mss: int = 1000
    prior_delivered: int = 0
    sample_delivered: int = 0
    interval_us: int = 0
    rtt_us: int = UNKNOWN
    newly_acked: int = 0
    app_limited: bool = False
    ack_delayed: bool = False
    cwnd_limited: bool = False
    in_recovery: bool = False
    sacks: bool = True


HEADER = (SOURCES / "fab_bbr_core.h").read_text()
LENGTHS = {name: int(value) for name, value in re.findall(r"^#define (\w+) (\d+)\b", HEADER, re.MULTILINE)}


def _records(*texts: str) -> dict[str, type[ctypes.Structure]]:
    """The structures of C texts: one integer, structure or array per line, or several of one type."""
    records: dict[str, type[ctypes.Structure]] = {}
    bare = re.sub(r"/\*.*?\*/", "", "\n".join(texts), flags=re.DOTALL)
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", bare, re.DOTALL | re.MULTILINE):
        fields = [
            (field, _of_type(kind, length, records))
            for kind, field, length in re.findall(
                r"^\s*((?:struct )?\w+) (\w+)(?:\[(\w+)\])?;", body, re.MULTILINE
            )
        ]
        records[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return records


def _of_type(kind: str, length: str, records: dict[str, type[ctypes.Structure]]) -> Any:
    one: Any = records[kind.removeprefix("struct ")] if kind.startswith("struct ") else INTEGERS[kind]
    return one * (int(length) if length.isdigit() else LENGTHS[length]) if length else one


# Of the core's own records only the sample is shown to the tests.
_SAMPLE = re.compile(r"^struct fab_sample \{\n.*?^\};", re.DOTALL | re.MULTILINE)
RECORDS = _records(HEADER, *_SAMPLE.findall((SOURCES / "fab_bbr_core.c").read_text()))


def _layout_checks() -> Iterator[str]:
    """C assertions that the compiler lays out records as ctypes does and numbers names as enumerations."""
    enumerations: tuple[tuple[type[enum.IntEnum], str], ...]
    enumerations = ((Profile, "FAB_PROFILE_"), (State, "FAB_"), (Acks, "FAB_ACKS_"))
    for enumeration, prefix in enumerations:
        for member in enumeration:
            yield f'_Static_assert({prefix}{member.name} == {member.value}, "{member.name}");'
    for name, record in RECORDS.items():
        yield f'_Static_assert(sizeof(struct {name}) == {ctypes.sizeof(record)}, "{name}");'
        for field in (entry[0] for entry in record._fields_):
            at = getattr(record, field)
            yield f'_Static_assert(offsetof(struct {name}, {field}) == {at.offset}, "{name}.{field}");'
            yield f'_Static_assert(sizeof(((struct {name} *)0)->{field}) == {at.size}, "{name}.{field}");'


def build(folder: Path) -> ctypes.CDLL:
    """The library of today's sources, written to ``folder``."""
    (folder / "layout.h").write_text("\n".join(_layout_checks()) + "\n")
    library = folder / "fab_bbr.so"
    subprocess.run(
        ("gcc", *FLAGS, f"-I{SOURCES}", f"-I{folder}", "-o", library, HERE / "harness.c"),
        check=True,
        timeout=COMPILER_LIMIT_S,
    )
    loaded = ctypes.CDLL(str(library))
    loaded.bbr_bdp.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32)
    loaded.bbr_bdp.restype = ctypes.c_uint32
    loaded.bbr_max_bw.restype = ctypes.c_uint64
    return loaded


class Core:
    """Opens connections on one built library."""

    def __init__(self, folder: Path) -> None:
        self.library = build(folder)

    def open(self, ack: Ack, profile: Profile, *, seed: int = 1, capacity: int = 1024) -> "Connection":
        return Connection(self.library, ack, profile, seed, capacity)


class Connection:
    """One connection: its state, its ring, and the calls of the core on them."""

    def __init__(self, library: ctypes.CDLL, ack: Ack, profile: Profile, seed: int, capacity: int) -> None:
        self.library = library
        self.record: Any = RECORDS["fab_bbr"]()
        self.slots = (RECORDS["fab_epoch"] * capacity)()
        self._sample: Any = RECORDS["fab_sample"]()
        setup = RECORDS["fab_setup"](capacity=capacity, seed=seed, profile=profile)
        self._input: Any = RECORDS["fab_ack"]()
        self._fill(ack)
        library.bbr_init(self._this, self._what, ctypes.byref(setup), self.slots)

    @cached_property
    def _this(self) -> Any:
        return ctypes.byref(self.record)

    @cached_property
    def _what(self) -> Any:
        return ctypes.byref(self._input)

    def _fill(self, ack: Ack) -> None:
        for name, value in vars(ack).items():
            setattr(self._input, name, value)

    def on_ack(self, ack: Ack) -> None:
        self._fill(ack)
        self.library.bbr_on_ack(self._this, self.slots, self._what)

    def on_recovery(self, cwnd: int) -> None:
        self.library.bbr_on_recovery(self._this, cwnd)

    def on_rto(self, ack: Ack) -> None:
        self._fill(ack)
        self.library.bbr_on_rto(self._this, self.slots, self._what)

    def on_restart(self, ack: Ack) -> None:
        self._fill(ack)
        self.library.bbr_on_restart(self._this, self._what)

    def on_spurious_loss(self, ack: Ack) -> None:
        self._fill(ack)
        self.library.bbr_on_spurious_loss(self._this, self._what)

    def take_sample(self, ack: Ack) -> Any:
        """``struct fab_sample`` of this ACK; a connection is for samples only, or for :meth:`on_ack` only."""
        self._fill(ack)
        self.library.bbr_take_sample(self._this, self.slots, self._what, ctypes.byref(self._sample))
        return self._sample

    def bdp(self, bw: int, gain: int = GAIN_UNIT) -> int:
        return int(self.library.bbr_bdp(self._this, bw, gain))

    @property
    def max_bw(self) -> int:
        return int(self.library.bbr_max_bw(self._this))

    @property
    def state(self) -> State:
        return State(self.record.state)

    def __getattr__(self, name: str) -> Any:
        """A field of ``struct fab_bbr``."""
        return getattr(self.__dict__["record"], name)

    def outputs(self) -> tuple[int, int, bool]:
        return self.record.cwnd, self.record.pacing_rate, self.record.mark_app_limited
