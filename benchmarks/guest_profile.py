"""What an ACK costs in the guest kernel: a sampled profile of the whole guest, with the kernel's own symbols.

The guest kernel is an ordinary program to the host, so ``perf`` sees where it is; its
virtual clock does not matter.
"""

from __future__ import annotations

import bisect
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.guest_path import run_guests
from benchmarks.load import Load
from fabbbr.backends.guest.image.found import found_image
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.units import Duration, Rate

LOAD = Load(rate=Rate.parse("1 Gbit/s"), rtt=Duration.parse("20 ms"), seconds=20)
_SAMPLES_PER_S = 4999
_PROGRAM = "linux"
_MODULE, _STOCK = ("fab_",), ("bbr_", "minmax_running_max")


@dataclass(frozen=True, kw_only=True)
class Symbols:
    """The functions of a kernel by address."""

    addresses: Sequence[int]
    names: Sequence[str]

    @classmethod
    def of_image(cls) -> Symbols:
        """Raise EnvironmentUnfitError when there is no kernel, or one without its symbols."""
        image = found_image()
        file = image.kernel.symbols if image else None
        if file is None or not file.exists():
            message = "no guest image with its symbols: fabbbr guest build"
            raise EnvironmentUnfitError(message)
        rows = [line.split() for line in file.read_text(encoding="ascii").splitlines()]
        found = sorted((int(row[0], 16), row[2]) for row in rows if len(row) == 3 and row[1] in "tT")
        return cls(addresses=[address for address, _ in found], names=[name for _, name in found])

    def at(self, address: int) -> str:
        """The function that holds ``address``; empty outside the kernel's code."""
        place = bisect.bisect_right(self.addresses, address) - 1
        return self.names[place] if place >= 0 else ""


def nanoseconds_per_ack(cca: str) -> float:
    """Mean CPU time in the functions of this congestion control, over the ACKs of one flow."""
    symbols = Symbols.of_image()
    with tempfile.TemporaryDirectory(prefix="fabbbr-profile-") as folder:
        record = Path(folder) / "perf.data"
        acks = _profiled(cca, record)
        own = _STOCK if cca == "bbr1" else _MODULE
        hits = sum(symbols.at(address).startswith(own) for address in _addresses(record))
    return hits / _SAMPLES_PER_S * 1e9 / acks


def _profiled(cca: str, record: Path) -> int:
    """Run the load in a process of its own under perf; return its ACKs."""
    perf = ("perf", "record", "--quiet", "--all-cpus", "--event", "cpu-clock", "--freq", str(_SAMPLES_PER_S))
    done = subprocess.run(
        (*perf, "--output", str(record), "--", sys.executable, "-m", "benchmarks.guest_profile", cca),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        message = (
            f"perf record: {done.stderr.strip().splitlines()[-1:] or done.returncode}; "
            f"apt-get install linux-perf"
        )
        raise EnvironmentUnfitError(message)
    return int(json.loads(done.stdout.splitlines()[-1])["acks"])


def _addresses(record: Path) -> list[int]:
    """Where the guest kernel was at each sample."""
    done = subprocess.run(
        ("perf", "script", "--input", str(record), "--comms", _PROGRAM, "--fields", "ip"),
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line, 16) for line in done.stdout.split()]


def main(argv: Sequence[str]) -> int:
    """Run one load and say how many ACKs it had: what is profiled."""
    (sample,) = run_guests(Load(**{**LOAD.__dict__, "cca": argv[0]}))
    print(json.dumps({"acks": sample.acks}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
