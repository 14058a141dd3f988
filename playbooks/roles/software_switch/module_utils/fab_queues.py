# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""What stands at the ports of a switch: settings → the lines for tc, and what tc must then tell. Pure.

The lines are those of fabbbr's own jobs: a TBF holds the bottleneck's queue, of so many bytes; with an AQM
the TBF only paces, because it ignores its own limit once it has a child; netem holds loss and delay, never at
an interface that has a TBF.

Python 3.6 and the standard library only.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

from ansible.module_utils.fab_node import RefusedError

NETEM_STEP = 2.0**-32
"""netem keeps probabilities in 32 bits."""
TOLD_DIGITS = 1e-5
"""tc tells a probability with six digits."""
TICKS_PER_S = 15625000
"""tc keeps a TBF's burst as time, in ticks of 64 ns."""
DELAY_STEP_US = 1
"""tc cuts off what it converts, so that a delay may be told one microsecond short."""
DEFAULT_HANDLE = "0:"
"""Of a queueing discipline that the kernel gave by itself."""


class Queue(NamedTuple):
    """A bottleneck: what leaves an interface is paced, and queues."""

    rate_bps: int
    burst_bytes: int
    buffer_bytes: int
    aqm: str
    ecn: bool
    frame_bytes: int
    """Of a full frame: the packets that an AQM may hold are ``buffer_bytes`` in such frames."""


class Line(NamedTuple):
    """A piece of a long line: packets are lost and delayed."""

    loss: float
    """Of each packet, independently: 0 to 1."""
    delay_us: int
    limit_packets: int
    """That can be on the line at once."""


class Port(NamedTuple):
    """What stands at one interface."""

    leaving: Union[Queue, Line, None]
    arriving: Optional[Line]


AQM_OPTIONS = {
    "codel": "codel limit {packets} {ecn}",
    "fq_codel": "fq_codel limit {packets} memory_limit {memory} {ecn}",
    "pie": "pie limit {packets} {ecn}",
    "fq_pie": "fq_pie limit {packets} memory_limit {memory} {ecn}",
    "red": "red limit {buffer} avpkt {average} bandwidth {rate}bit adaptive {mark}",
    "cake": "cake unlimited besteffort memlimit {buffer}",
}
_ECN_AQMS = ("codel", "fq_codel", "pie", "fq_pie", "red")
_QUEUE_KEYS = ("rate_bps", "burst_bytes", "buffer_bytes")


def port_of(name: str, asked: Dict[str, Any]) -> Port:
    """The settings of one interface; RefusedError where they contradict themselves or could not be exact."""
    queue, line = _queue_of(name, asked), _line_of(name, asked, "")
    if queue is not None and line is not None:
        msg = (
            f"interface {name}: a bottleneck (rate_bps) and a line (loss, delay_s) never stand at one "
            "interface: the line's packets would count as queued. Let the line be at another port, or at "
            "what arrives here (arriving_loss, arriving_delay_s)"
        )
        raise RefusedError(msg)
    return Port(queue if queue is not None else line, _line_of(name, asked, "arriving_"))


def _queue_of(name: str, asked: Dict[str, Any]) -> Optional[Queue]:
    given = [key for key in _QUEUE_KEYS if asked.get(key) is not None]
    aqm, ecn = asked.get("aqm") or "taildrop", bool(asked.get("ecn"))
    if not given:
        if aqm != "taildrop" or ecn:
            raise _refusal(
                name, "aqm and ecn are of a bottleneck: give rate_bps, burst_bytes and buffer_bytes too"
            )
        return None
    if len(given) < len(_QUEUE_KEYS):
        raise _refusal(
            name, "{} need each other: {} is missing".format(", ".join(_QUEUE_KEYS), _missing(given))
        )
    for key in _QUEUE_KEYS:
        if asked[key] <= 0:
            raise _refusal(name, f"{key} = {asked[key]} must be positive")
    if asked["rate_bps"] % 8:
        raise _refusal(
            name, "rate_bps = {} is no multiple of 8: the kernel keeps bytes".format(asked["rate_bps"])
        )
    if ecn and aqm not in _ECN_AQMS:
        raise _refusal(name, "ecn is a choice of {} only, not of {}".format(", ".join(_ECN_AQMS), aqm))
    return Queue(
        rate_bps=asked["rate_bps"],
        burst_bytes=asked["burst_bytes"],
        buffer_bytes=asked["buffer_bytes"],
        aqm=aqm,
        ecn=ecn,
        frame_bytes=asked.get("frame_bytes") or 1514,
    )


def _missing(given: Sequence[str]) -> str:
    return ", ".join(key for key in _QUEUE_KEYS if key not in given)


def _line_of(name: str, asked: Dict[str, Any], prefix: str) -> Optional[Line]:
    loss, delay_s = asked.get(prefix + "loss"), asked.get(prefix + "delay_s")
    limit = asked.get(prefix + "limit_packets")
    if loss is None and delay_s is None:
        if limit is not None:
            raise _refusal(
                name, f"{prefix}limit_packets is of a line: give {prefix}loss or {prefix}delay_s too"
            )
        return None
    if limit is None or limit <= 0:
        raise _refusal(
            name,
            f"{prefix}limit_packets must say how many packets the line holds: netem's own 1000 would drop "
            "the rest in silence (rate × delay / packet size, and some more)",
        )
    loss, delay_s = loss or 0.0, delay_s or 0.0
    if not 0 <= loss <= 1 or 0 < loss < NETEM_STEP:
        raise _refusal(name, f"{prefix}loss = {loss} must be a share from 0 to 1, of at least 2^-32 if any")
    delay_us = round(delay_s * 1e6)
    if delay_us < 0 or abs(delay_us - delay_s * 1e6) > 1e-3:
        raise _refusal(name, f"{prefix}delay_s = {delay_s} must be whole microseconds: tc tells no finer")
    return Line(loss=loss, delay_us=delay_us, limit_packets=limit)


def _refusal(name: str, why: str) -> RefusedError:
    return RefusedError(f"interface {name}: {why}")


def stand_in(port: str) -> str:
    """The interface through which what arrives at a port is led. A name has 15 characters at most."""
    return "in-" + port[:12]


def lines_of(device: str, at: Union[Queue, Line, None]) -> List[str]:
    """The lines for ``tc -batch`` that set this at an interface that has nothing."""
    if at is None:
        return []
    if isinstance(at, Line):
        delay = f" delay {at.delay_us}us" if at.delay_us else ""
        loss = f" loss random {at.loss * 100:.12g}%" if at.loss else ""
        return [f"qdisc add dev {device} root handle 1: netem limit {at.limit_packets}{delay}{loss}"]
    tbf = (
        f"qdisc add dev {device} root handle 1: tbf "
        f"rate {at.rate_bps}bit burst {at.burst_bytes} limit {at.buffer_bytes}"
    )
    if at.aqm == "taildrop":
        return [tbf]
    options = AQM_OPTIONS[at.aqm].format(
        packets=_packets(at),
        memory=_memory_bytes(at),
        buffer=at.buffer_bytes,
        average=_red_packet_bytes(at.buffer_bytes),
        rate=at.rate_bps,
        ecn="ecn" if at.ecn else "noecn",
        mark="ecn" if at.ecn else "",
    )
    return [tbf, f"qdisc add dev {device} parent 1:1 handle 2: {options}".rstrip()]


def _red_packet_bytes(limit_bytes: int) -> int:
    """The average packet of RED: tc finds no weight where its lower threshold holds 1.2 of them or fewer."""
    lower = limit_bytes // 4 // 3
    return lower if lower < 1200 else 1000


def arriving_lines(port: str) -> List[str]:
    """The lines that lead what arrives at a port through its stand-in."""
    return [
        f"qdisc add dev {port} clsact",
        f"filter add dev {port} ingress matchall action mirred egress redirect dev {stand_in(port)}",
    ]


def _packets(queue: Queue) -> int:
    return max(queue.buffer_bytes // queue.frame_bytes, 1)


def _memory_bytes(queue: Queue) -> int:
    """So much that it never binds: it counts kernel memory, and bytes are kept by counting full frames."""
    return 4 * queue.buffer_bytes + (1 << 20)


def differences(device: str, at: Union[Queue, Line, None], told: Sequence[Dict[str, Any]]) -> List[str]:
    """What ``tc -r -j qdisc show`` tells of an interface that is not so; empty when all is as it was set."""
    here = [one for one in told if one.get("dev") == device and one["kind"] not in ("clsact", "ingress")]
    if at is None:
        return [
            "{}: {} {} stands there".format(device, one["kind"], one["handle"])
            for one in here
            if one["handle"] != DEFAULT_HANDLE
        ]
    wanted = ["netem 1:"] if isinstance(at, Line) else ["tbf 1:"]
    if isinstance(at, Queue) and at.aqm != "taildrop":
        wanted.append(f"{at.aqm} 2:")
    found = ["{} {}".format(one["kind"], one["handle"]) for one in here]
    if found != wanted:
        return ["{}: {} instead of {}".format(device, " + ".join(found) or "nothing", " + ".join(wanted))]
    options = [one.get("options", {}) for one in here]
    wrong = _wrong_in_line(at, options[0]) if isinstance(at, Line) else _wrong_in_queue(at, options)
    return [f"{device}: {one}" for one in wrong]


def _wrong_in_queue(queue: Queue, options: Sequence[Dict[str, Any]]) -> List[str]:
    tbf = options[0]
    wrong = _unlike(tbf, {"rate": queue.rate_bps // 8, "limit": queue.buffer_bytes}, of="tbf")
    ticks = -(-queue.burst_bytes * 8 * TICKS_PER_S // queue.rate_bps)
    told = tbf.get("burst_raw")
    # The kernel keeps nanoseconds, and may tell a tick less than it was given; at another rate, another time.
    if not wrong and (told is None or abs(int(told, 16) - ticks) > 1):
        wrong.append("burst of tbf is {} bytes instead of {}".format(tbf.get("burst"), queue.burst_bytes))
    if queue.aqm != "taildrop":
        wrong += _unlike(options[1], _aqm_settings(queue), of=queue.aqm)
    return wrong


def _aqm_settings(queue: Queue) -> Dict[str, Any]:
    # What is off some AQMs tell, and of others it is left out.
    settings: Dict[str, Dict[str, Any]] = {
        "codel": {"limit": _packets(queue), "ecn": queue.ecn},
        "fq_codel": {"limit": _packets(queue), "memory_limit": _memory_bytes(queue), "ecn": queue.ecn},
        "pie": {"limit": _packets(queue), "ecn": queue.ecn},
        "fq_pie": {"limit": _packets(queue), "memory_limit": _memory_bytes(queue), "ecn": queue.ecn},
        "red": {"limit": queue.buffer_bytes, "ecn": queue.ecn, "adaptive": True},
        "cake": {"bandwidth": "unlimited", "diffserv": "besteffort", "memlimit": queue.buffer_bytes},
    }
    return settings[queue.aqm]


def _wrong_in_line(line: Line, options: Dict[str, Any]) -> List[str]:
    wrong = _unlike(options, {"limit": line.limit_packets}, of="netem")
    delay = options.get("delay", {})
    told_us = float(delay.get("delay", 0.0)) * 1e6
    if abs(told_us - line.delay_us) > DELAY_STEP_US + 1e-3 or delay.get("jitter"):
        wrong.append(f"delay of netem is {delay or 0} instead of {line.delay_us / 1e6} s")
    loss = options.get("loss-random", {})
    told = float(loss.get("loss", 0.0))
    if abs(told - line.loss) > max(NETEM_STEP, line.loss * TOLD_DIGITS) or loss.get("correlation"):
        wrong.append(f"loss of netem is {loss or 0} instead of {line.loss}")
    others = sorted(
        set(options) & {"loss-state", "loss-gemodel", "duplicate", "reorder", "corrupt", "rate", "slot"}
    )
    wrong += [f"netem has {other} too" for other in others]
    return wrong


def _unlike(options: Dict[str, Any], wanted: Dict[str, Any], of: str) -> List[str]:
    return [
        f"{name} of {of} is {options.get(name)} instead of {value}"
        for name, value in wanted.items()
        if options.get(name, False if isinstance(value, bool) else None) != value
    ]


def arriving_differences(port: str, wanted: bool, told: Sequence[Dict[str, Any]]) -> List[str]:  # noqa: FBT001
    """What ``tc -j filter show dev PORT ingress`` tells that is not so."""
    targets = [action.get("to_dev") for one in told for action in one.get("options", {}).get("actions", ())]
    expected = [stand_in(port)] if wanted else []
    if targets == expected:
        return []
    said = " and ".join(str(target) for target in targets)
    return ["{}: what arrives is led {}".format(port, "to " + said if targets else "nowhere else")]
