"""How faithful the guest's paths are: asked against measured, over a grid of rates and round trips.

    python benchmarks/fidelity.py                         the whole grid, a few minutes
    python benchmarks/fidelity.py --rates '1 Gbit/s' --rtts '1 ms,20 ms' --markdown

Rate, round trip, buffer and conservation of packets come from each cell's certificate. Goodput comes
from samples of the receiver's socket (``bytes_received``): a paced Reno flow keeps the queue from
emptying without filling it, so that the path is full and nothing is lost while it is measured. A
second set of cells has 1 % loss.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, log2
from pathlib import Path

from rich.console import Console

from benchmarks.table import Table
from fabbbr.errors import FabbbrError
from fabbbr.execute import Event
from fabbbr.laboratory import Request, carry_out
from fabbbr.manifest import Check
from fabbbr.ports import DATA_PORT
from fabbbr.store import StoredCell
from fabbbr.units import ETHERNET_HEADER_BYTES, Duration, Rate, bdp_bytes, goodput_ceiling

RATES = "1 Mbit/s,10 Mbit/s,100 Mbit/s,1 Gbit/s,10 Gbit/s"
ROUND_TRIPS = "1 ms,20 ms,100 ms,200 ms"
RTT_TOLERANCE_US = 10.0
RATE_TOLERANCE = 0.002
GOODPUT_TOLERANCE = 0.002

_PING_FRAME_BYTES = 98
_MTU_BYTES = 1500
_FRAME_BYTES = _MTU_BYTES + ETHERNET_HEADER_BYTES
_FIRST_WINDOW_PACKETS = 10
_PACING = 1.02
"""Times the bottleneck's rate (Linux paces payload, so times the ceiling of goodput): a
queue stands there, growing."""
_QUEUE_SHARE = 0.03
"""Of all that the bottleneck carries: more than pacing lets the queue grow, so that nothing is lost."""
_SLACK_PACKETS = 40
_MEASURED_PACKETS = 4000
"""One packet more or less is then 0.025 %."""
_MEASURED_S = 1.0
_MEASURED_ROUNDS = 3
_EXTRA_ROUNDS = 8
_END_MARGIN_S = 0.3
_LOSS = "1 %"
_LOSS_RTT = Duration.parse("20 ms")
_RECEIVED = re.compile(r" bytes_received:(\d+)")


@dataclass(frozen=True, kw_only=True)
class Result:
    """One cell. None: not measured in this cell."""

    rate: str
    rtt: str
    loss: str
    rtt_error_us: float
    """The worst ping against propagation alone; its own serialisation is allowed on top of the tolerance."""
    rate_error: float | None
    goodput_error: float | None
    """Of the theoretical ceiling of TCP payload at this rate."""
    buffer: str | None
    """What the probe saw, where it fills the buffer."""
    injected_loss: str | None
    unexplained_packets: int
    failed: tuple[str, ...]
    """Names of what is out of tolerance."""


def main(argv: Sequence[str]) -> int:
    arguments = _arguments(argv)
    rates = [Rate.parse(text) for text in arguments.rates.split(",")]
    round_trips = [Duration.parse(text) for text in arguments.rtts.split(",")]
    console = Console(stderr=True)
    paths: list[tuple[Rate, Duration, str | None]] = [
        (rate, rtt, None) for rate in rates for rtt in round_trips
    ]
    if not arguments.no_loss:
        paths += [(rate, _LOSS_RTT, _LOSS) for rate in rates]
    results = []
    for number, (rate, rtt, loss) in enumerate(paths, start=1):
        console.print(f"{number} of {len(paths)}: {rate}, {rtt}, loss {loss or 'none'}", highlight=False)
        results.append(_measure(rate, rtt, loss))
    if arguments.json:
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        table = _table(results)
        print(table.markdown() if arguments.markdown else table.plain())
    return 1 if any(result.failed for result in results) else 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rates", default=RATES)
    parser.add_argument("--rtts", default=ROUND_TRIPS)
    parser.add_argument("--no-loss", action="store_true", help="leave out the cells with loss")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true")
    form.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


def ramp_s(rate: Rate, rtt: Duration) -> float:
    """Seconds until slow start, doubling each round trip, has surely filled the path."""
    packets = float(bdp_bytes(rate, rtt)) / _FRAME_BYTES
    rounds = max(log2(max(packets, 1.0) / _FIRST_WINDOW_PACKETS), 0.0) + _EXTRA_ROUNDS
    # A round trip is longer than the propagation where the first window itself takes a while to be sent.
    return rounds * (rtt.seconds + _FIRST_WINDOW_PACKETS * _FRAME_BYTES * 8 / rate.bps)


def window_s(rate: Rate, rtt: Duration) -> float:
    """Seconds over which goodput is measured."""
    return max(_MEASURED_S, _MEASURED_ROUNDS * rtt.seconds, _MEASURED_PACKETS * _FRAME_BYTES * 8 / rate.bps)


def experiment_text(rate: Rate, rtt: Duration, loss: str | None) -> str:
    """The experiment file of one cell."""
    seconds = ceil(ramp_s(rate, rtt) + window_s(rate, rtt) + _END_MARGIN_S)
    flow = "cca: bbr1" if loss else f"cca: reno, pacing: {Rate(int(_ceiling_bps(rate) * _PACING))}"
    standing = int(_QUEUE_SHARE * rate.bps / 8 * seconds)
    buffer = (int(bdp_bytes(rate, rtt)) if loss else standing) + _SLACK_PACKETS * _FRAME_BYTES
    return f"""\
id: fidelity
title: Fidelity of the emulated path
slice: two_site
path: {{rate: {rate}, rtt: {rtt}, buffer: {buffer} B, loss: {loss or "0 %"}}}
flows: [{{{flow}, duration: {seconds} s}}]
repeat: 1
"""


def _measure(rate: Rate, rtt: Duration, loss: str | None) -> Result:
    with tempfile.TemporaryDirectory(prefix="fabbbr-fidelity-") as place:
        file = Path(place) / "fidelity.yaml"
        file.write_text(experiment_text(rate, rtt, loss), encoding="utf-8")
        request = Request(experiment=str(file), out=Path(place) / "run", jobs=1)
        folder, summary = carry_out(request, announce=lambda *_: None, listen=_ignore)
        for reason in summary.failed.values():
            raise FabbbrError(reason)
        return _judge(next(folder.cells()), rate, rtt, loss)


def _ignore(_: Event) -> None:
    """Progress inside one cell is not shown."""


def _judge(stored: StoredCell, rate: Rate, rtt: Duration, loss: str | None) -> Result:
    checks = {check.name: check for check in stored.manifest.certificate.checks}
    rtt_error = _rtt_error_us(_first(checks, "RTT "), rtt)
    rate_error = _rate_error(checks["rate"], rate)
    goodput_error = None if loss else _goodput_bps(stored, rate, rtt) / _ceiling_bps(rate) - 1
    serialisation_us = _PING_FRAME_BYTES * 8e6 / rate.bps
    out = {
        "RTT": abs(rtt_error) > RTT_TOLERANCE_US + serialisation_us,
        "rate": rate_error is None or abs(rate_error) > RATE_TOLERANCE,
        "goodput": goodput_error is not None and abs(goodput_error) > GOODPUT_TOLERANCE,
    }
    injected = _first(checks, "injected loss")
    return Result(
        rate=str(rate),
        rtt=str(rtt),
        loss=loss or "none",
        rtt_error_us=rtt_error,
        rate_error=rate_error,
        goodput_error=goodput_error,
        buffer=checks["buffer"].measured if "buffer" in checks else None,
        injected_loss=injected.measured if injected is not None else None,
        unexplained_packets=sum(map(_unexplained, checks.values())),
        failed=tuple(
            [name for name, wrong in out.items() if wrong]
            + [check.name for check in checks.values() if not check.passed]
        ),
    )


def _first(checks: dict[str, Check], start: str) -> Check | None:
    return next((check for name, check in checks.items() if name.startswith(start)), None)


def _rtt_error_us(check: Check | None, rtt: Duration) -> float:
    numbers = [float(text) for text in re.findall(r"[\d.]+", check.measured)] if check is not None else []
    return max((number * 1e3 - rtt.ns / 1e3 for number in numbers), key=abs, default=float("nan"))


def _rate_error(check: Check, rate: Rate) -> float | None:
    match = re.fullmatch(r"([\d.e+]+) Mbit/s", check.measured)
    return float(match[1]) * 1e6 / rate.bps - 1 if match is not None else None


def _unexplained(check: Check) -> int:
    match = re.search(r"(-?\d+) unexplained", check.measured)
    return abs(int(match[1])) if match is not None else 0


def _ceiling_bps(rate: Rate) -> float:
    return rate.bps * goodput_ceiling(_MTU_BYTES)


def _goodput_bps(stored: StoredCell, rate: Rate, rtt: Duration) -> float:
    """Between the samples next to the steady window's ends: ``bytes_received`` of the data connection."""
    cell = stored.manifest.cell
    assert cell.flows[0].duration is not None
    end = cell.flows[0].duration.seconds
    series = [
        (t, received)
        for t, received in _received(stored, cell.flows[0].receiver)
        if end - _END_MARGIN_S - window_s(rate, rtt) <= t <= end
    ]
    if len(series) < 2:
        message = f"{stored.id}: the receiver's data socket is in {len(series)} samples of the steady window"
        raise FabbbrError(message)
    (start_s, first), (end_s, last) = series[0], series[-1]
    return (last - first) * 8 / (end_s - start_s)


def _received(stored: StoredCell, host: str) -> Iterator[tuple[float, int]]:
    """Time and payload bytes received so far, sample by sample."""
    lines = iter(stored.raw(f"sockets.{host}.txt").read_text(encoding="utf-8").splitlines())
    for entry in stored.raw(f"sockets.{host}.times").read_text(encoding="utf-8").splitlines():
        t, sockets = entry.split()
        for line in (next(lines) for _ in range(int(sockets))):
            match = _RECEIVED.search(line)
            if match is not None and _is_data(line):
                yield float(t), int(match[1])


def _is_data(line: str) -> bool:
    """Whether the peer sends from a data port: the connection that carries the flow."""
    return int(line.split()[4].rsplit(":", 1)[1]) >= DATA_PORT


def _table(results: Sequence[Result]) -> Table:
    table = Table(
        title="Asked against measured",
        head=(
            "rate",
            "RTT",
            "loss",
            "RTT error",
            "rate error",
            "goodput error",
            "buffer",
            "injected",
            "lost unexplained",
            "",
        ),
    )
    for result in results:
        table.add(
            result.rate,
            result.rtt,
            result.loss,
            f"{result.rtt_error_us:+.0f} us",
            _percent(result.rate_error),
            _percent(result.goodput_error),
            result.buffer or "not filled",
            result.injected_loss or "–",
            str(result.unexplained_packets),
            "pass" if not result.failed else "FAIL: " + ", ".join(result.failed),
        )
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:+.3%}"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except FabbbrError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_status)
