"""The round trip and the rate between hosts of a slice, with nothing emulated: what the network itself is.

Every node stands for a while as a job would have it, with addresses of its own, and switches bridge. Nothing
of that is left afterwards (:mod:`fabbbr.backends.paths`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

from fabbbr.backends.channel import Channel
from fabbbr.backends.paths import Answer, End, Paths, Standing, standing
from fabbbr.reserve.records import LiveSlice, Reservation
from fabbbr.slice.state import MeasuredPair
from fabbbr.topology import Topology

PINGS = 10
RATE_S = 10
_NEAR_S, _NEAR_RATE_S = 1e-3, 1
"""Where the round trip is shorter a TCP flow is at its rate at once."""
_NO_TIME = "computing takes no time there, and so bytes neither"
"""Within a guest, whose clock stands still meanwhile: a second of it are fifty gigabytes, and no rate."""
_GAP_S = 0.2
_PINGS_LIMIT_S = 30
_MOST_PAIRS = 100
"""Of hosts; where there are more, only those are measured between which flows go by default."""
_MOST_RATES = 30
"""Five minutes of them; where there are more pairs, of others than those the round trip alone."""
_NETWORK = "10.77.{}.{}/16"
"""Only inside name spaces: it may be in use elsewhere."""
_NO_SERVER_YET = 3
"""Tries: iperf3 is told to serve, and not yet asked whether it does."""


def measure(
    reservation: Reservation,
    live: LiveSlice,
    topology: Topology,
    channels: Mapping[str, Channel],
    tell: Callable[[str], None],
) -> tuple[MeasuredPair, ...]:
    """Round trip and rate of every pair of hosts, one after the other; the slice's own pairs come first.

    ``tell`` is told what is measured now. Raise BackendError, which names the machine, when the nodes cannot
    stand there; a pair that does not answer is in the result.
    """
    if not live.machines:
        return ()
    own = [(pair.sender, pair.receiver) for pair in topology.pairs]
    hosts = list(topology.host_names)
    others = [(a, b) for a, b in combinations(hosts, 2) if (a, b) not in own and (b, a) not in own]
    pairs = [*own, *others] if len(own) + len(others) <= _MOST_PAIRS else own
    rated = pairs if len(pairs) <= _MOST_RATES else own
    stands = plan(reservation, live, topology)
    addresses = {
        node: address.partition("/")[0]
        for what in stands.values()
        for node, address in what.nodes.items()
        if address is not None
    }
    with standing(stands, channels) as paths:
        for receiver in dict.fromkeys(receiver for _, receiver in rated):
            paths.serve(receiver, ("iperf3", "-s"))
        return tuple(_measured(paths, a, b, addresses[b], tell, with_rate=(a, b) in rated) for a, b in pairs)


def plan(reservation: Reservation, live: LiveSlice, topology: Topology) -> dict[str, Standing]:
    """What stands on each machine. Pure."""
    placement = reservation.placement
    address = {
        host: _NETWORK.format(*divmod(number, 256))
        for number, host in enumerate(topology.host_names, start=1)
    }
    macs = {machine.name: machine.interfaces for machine in live.machines}
    cables: dict[str, list[tuple[End, End]]] = {machine: [] for machine in macs}
    sides: dict[str, list[End]] = {machine: [] for machine in macs}
    for number, link in enumerate(topology.links):
        # Unlike any interface of the machine: both may be in one name space for a moment.
        names = (f"fbp{number}a", f"fbp{number}b")
        ends = [End(node=node, name=name) for node, name in zip((link.a, link.b), names, strict=True)]
        at = [placement[link.a], placement[link.b]]
        if at[0] == at[1]:
            cables[at[0]].append((ends[0], ends[1]))
            continue
        for end, machine in zip(ends, at, strict=True):
            sides[machine].append(end.model_copy(update={"mac": macs[machine][link.name]}))
    return {
        machine.name: Standing(
            nodes={node: address.get(node) for node in machine.nodes},
            cables=tuple(cables[machine.name]),
            sides=tuple(sides[machine.name]),
        )
        for machine in reservation.machines
    }


def _measured(
    paths: Paths, a: str, b: str, address: str, tell: Callable[[str], None], *, with_rate: bool
) -> MeasuredPair:
    tell(f"round trip {a}–{b}")
    # A kernel notices up to a second late that an interface is up, and keeps the first pings until then.
    _pinged(paths, a, address, 1)
    pinged = _pinged(paths, a, address, PINGS)
    rtt_s, lost, said = read_ping(pinged)
    rate_bps = None
    if with_rate and rtt_s == 0:
        said = _NO_TIME
    elif with_rate and rtt_s is not None:
        seconds = RATE_S if rtt_s >= _NEAR_S else _NEAR_RATE_S
        tell(f"rate {a} to {b}, {seconds} s")
        rate_bps, said = _rate(paths, a, address, seconds)
    return MeasuredPair(sender=a, receiver=b, rtt_s=rtt_s, lost=lost, rate_bps=rate_bps, said=said)


def _pinged(paths: Paths, sender: str, address: str, count: int) -> Answer:
    """Until so many were answered, or the time is over."""
    argv = ("ping", "-n", "-q", "-c", str(count), "-i", str(_GAP_S), "-w", str(_PINGS_LIMIT_S), address)
    return paths.run(sender, argv, timeout_s=_PINGS_LIMIT_S + 5)


def _rate(paths: Paths, sender: str, address: str, seconds: int) -> tuple[float | None, str]:
    rate_bps, said = None, ""
    for _ in range(_NO_SERVER_YET):
        argv = ("iperf3", "-c", address, "-t", str(seconds), "-J", "--connect-timeout", "5000")
        rate_bps, said = read_iperf3(paths.run(sender, argv, timeout_s=seconds + 20))
        if "refused" not in said:
            break
        paths.run(sender, ("sleep", "1"), timeout_s=5)
    return rate_bps, said


_SUMMARY = re.compile(r"(\d+) packets transmitted, (\d+) received")
_TIMES = re.compile(r"= ([\d.]+)/[\d.]+/[\d.]+/[\d.]+ ms")


def read_ping(answer: Answer) -> tuple[float | None, float, str]:
    """Least round trip, share of lost pings, and why there are none.

    >>> said = "4 packets transmitted, 3 received, 25% packet loss; rtt min/avg/max/mdev = 26/27/28/1 ms"
    >>> read_ping(Answer(exit=0, stderr="", stdout=said))
    (0.026, 0.25, '')
    """
    summary, times = _SUMMARY.search(answer.stdout), _TIMES.search(answer.stdout)
    if summary is None:
        return None, 1.0, _words("ping", answer)
    sent, received = map(int, summary.groups())
    lost = 1 - received / sent if sent else 1.0
    if times is None:
        return None, lost, "no ping came back"
    return float(times[1]) / 1e3, lost, ""


def read_iperf3(answer: Answer) -> tuple[float | None, str]:
    """What the receiver got, in bit/s, or why nothing is known of it."""
    try:
        told = json.loads(answer.stdout)
        if "error" in told:
            return None, f"iperf3: {told['error']}"
        return float(told["end"]["sum_received"]["bits_per_second"]), ""
    except (ValueError, LookupError, TypeError):
        return None, _words("iperf3", answer)


def _words(program: str, answer: Answer) -> str:
    lines: Iterator[str] = iter((answer.stderr or answer.stdout).strip().splitlines())
    return f"{program}: {next(lines, f'ended with {answer.exit}')}"
