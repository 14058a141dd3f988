"""What ``sysctl`` sets: how TCP of all hosts is tuned, under the kernel's own names without ``net.ipv4.``.

Only what belongs to one host (a name space), and leaves alone how many bytes of payload a segment has: every
ceiling and every count of packets rests on that.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from fabbbr.errors import UnitError
from fabbbr.foreign import shown
from fabbbr.quantity import WHOLE, refused
from fabbbr.record import FileRecord
from fabbbr.units import Size

_LARGEST = 2**31 - 1
_SMALLEST_BUFFER_BYTES = 4096
_FIRST_BYTES = {"receive": 131_072, "send": 16_384}
"""Of a new connection, by the kernel's default."""
_THREE = re.compile(r"\s*(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s*")


def _memory(way: str) -> BeforeValidator:
    """Least, first and most of a socket buffer, as the kernel takes them."""

    def read(value: object) -> object:
        text = str(value)
        three = _THREE.fullmatch(text)
        if three is None:
            try:
                most = Size.parse(text).bytes
            except UnitError as error:
                why = f"{error}; or write least, first and most in bytes, e.g. 4096 131072 6291456"
                raise refused(why) from None
            numbers = (_SMALLEST_BUFFER_BYTES, min(_FIRST_BYTES[way], most), most)
        else:
            numbers = (int(three[1]), int(three[2]), int(three[3]))
        if not _SMALLEST_BUFFER_BYTES <= numbers[0] <= numbers[1] <= numbers[2] <= _LARGEST:
            why = (
                f"{shown(text)} is not from {_SMALLEST_BUFFER_BYTES} to {_LARGEST} bytes, in ascending order"
            )
            raise refused(why)
        return " ".join(map(str, numbers))

    return BeforeValidator(read)


_MEMORY = WithJsonSchema(
    {
        "type": "string",
        "pattern": r"^([\d.eE+]+ *([kMGT]i?)?B|\d+ +\d+ +\d+)$",
        "examples": ["6 MB", "4096 131072 6291456"],
    }
)

ReceiveBuffer = Annotated[str, _memory("receive"), _MEMORY]
SendBuffer = Annotated[str, _memory("send"), _MEMORY]
Bytes = Annotated[int, Field(ge=4096, le=_LARGEST), WHOLE]
Nanoseconds = Annotated[int, Field(ge=0, le=10**9), WHOLE]
Percent = Annotated[int, Field(ge=1, le=1000), WHOLE]


class Sysctls(FileRecord):
    """How TCP of all hosts is tuned. What is not given stays as the kernel has it, but for the buffers."""

    tcp_rmem: ReceiveBuffer | None = Field(None, examples=["6 MB"])
    """Receive buffer of a connection: the most, or least, first and most in bytes, as
    ``4096 131072 6291456``. It is memory; of packets of 1500 bytes some 0.6 of it is data. Default: so large
    that it limits no flow."""
    tcp_wmem: SendBuffer | None = Field(None, examples=["4 MB"])
    """Send buffer of a connection: the most, or least, first and most in bytes, as ``4096 16384 4194304``.
    Default: so large that it limits no flow."""
    tcp_moderate_rcvbuf: bool | None = None
    """Whether the receive buffer grows with what arrives. Default: the kernel's, true."""
    tcp_rcvbuf_low_rtt: Annotated[int, Field(ge=0, le=_LARGEST), WHOLE] | None = None
    """In µs: below this RTT it grows no faster than needed. Default: the kernel's."""
    tcp_window_scaling: bool | None = None
    """Whether windows may exceed 65 535 bytes. Default: the kernel's, true."""
    tcp_shrink_window: bool | None = None
    """Whether a receiver short of memory takes back a window it has offered. Default: the kernel's, false."""
    tcp_notsent_lowat: Annotated[int, Field(ge=0, le=2**32 - 1), WHOLE] | None = None
    """Bytes not sent yet beyond which a socket takes no more. Default: the kernel's, no such limit."""
    tcp_limit_output_bytes: Bytes | None = None
    """Of one connection, in the sending host's queues (TCP small queues). Default: the kernel's."""
    tcp_autocorking: bool | None = None
    """Whether small writes wait to be joined. Default: the kernel's, true."""
    tcp_sack: bool | None = None
    """Selective acknowledgements. Default: the kernel's, true."""
    tcp_dsack: bool | None = None
    """Whether receivers tell what came twice. Default: the kernel's, true."""
    tcp_comp_sack_delay_ns: Nanoseconds | None = None
    """How long selective acknowledgements wait for the next, in ns. Default: the kernel's, a millisecond."""
    tcp_comp_sack_slack_ns: Nanoseconds | None = None
    """By how much that wait may be longer, in ns. Default: the kernel's."""
    tcp_comp_sack_nr: Annotated[int, Field(ge=0, le=255), WHOLE] | None = None
    """How many of them are joined at most; 0 joins none. Default: the kernel's, 44."""
    tcp_comp_sack_rtt_percent: Percent | None = None
    """Share of the RTT that they wait at most. Default: the kernel's."""
    tcp_pingpong_thresh: Annotated[int, Field(ge=1, le=255), WHOLE] | None = None
    """Answers after which acknowledgements are delayed. Default: the kernel's."""
    tcp_backlog_ack_defer: bool | None = None
    """Whether what came while a socket was busy is acknowledged once. Default: the kernel's, true."""
    tcp_recovery: Annotated[int, Field(ge=0, le=7), WHOLE] | None = None
    """Bits of RACK loss detection: 1 on, 2 without reordering window, 4 without counting duplicates.
    Default: the kernel's, 1."""
    tcp_early_retrans: Annotated[int, Field(ge=0, le=4), WHOLE] | None = None
    """Tail loss probes: 0 none, 3 or 4 some. Default: the kernel's, 3."""
    tcp_frto: Annotated[int, Field(ge=0, le=2), WHOLE] | None = None
    """Whether a timeout that was too early is found out (F-RTO): 0 not. Default: the kernel's, 2."""
    tcp_reordering: Annotated[int, Field(ge=1, le=300), WHOLE] | None = None
    """Packets by which a late one may be overtaken at first. Default: the kernel's, 3."""
    tcp_max_reordering: Annotated[int, Field(ge=1, le=100_000), WHOLE] | None = None
    """To how many of them TCP may raise that. Default: the kernel's, 300."""
    tcp_rto_min_us: Annotated[int, Field(ge=1000, le=10**6), WHOLE] | None = None
    """The shortest retransmission timeout, in µs. Default: the kernel's, 200 ms."""
    tcp_rto_max_ms: Annotated[int, Field(ge=1000, le=120_000), WHOLE] | None = None
    """The longest, in ms. Default: the kernel's, two minutes."""
    tcp_thin_linear_timeouts: bool | None = None
    """Whether timeouts of a flow with few packets do not double. Default: the kernel's, false."""
    tcp_slow_start_after_idle: bool | None = None
    """Whether a connection that was idle begins with a small window again. Default: the kernel's, true."""
    tcp_pacing_ss_ratio: Percent | None = None
    """Rate of paced flows in slow start, in % of window / RTT; BBR sets its own. Default: the kernel's,
    200."""
    tcp_pacing_ca_ratio: Percent | None = None
    """The same after slow start. Default: the kernel's, 120."""
    tcp_min_rtt_wlen: Annotated[int, Field(ge=0, le=86_400), WHOLE] | None = None
    """How long TCP remembers its least RTT, in s. BBR has its own. Default: the kernel's, 300."""
    tcp_min_tso_segs: Annotated[int, Field(ge=1, le=255), WHOLE] | None = None
    """Segments of a super-packet at least. Default: the kernel's, 2."""
    tcp_tso_win_divisor: Annotated[int, Field(ge=0, le=255), WHOLE] | None = None
    """Share of the window that one super-packet may take, as 1 / this. Default: the kernel's, 3."""
    tcp_tso_rtt_log: Annotated[int, Field(ge=0, le=31), WHOLE] | None = None
    """Makes super-packets larger for short RTTs, by 2^this µs; 0 not. Default: the kernel's, 9."""

    def given(self) -> dict[str, str]:
        """What the file sets: the name → the value as ``sysctl`` takes it."""
        said = self.model_dump(exclude_none=True)
        return {name: str(int(value) if isinstance(value, bool) else value) for name, value in said.items()}
