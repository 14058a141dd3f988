"""How long a change of conditions by the role software_switch takes, Ansible's own start included.

Usage: python -m benchmarks.conditions [--changes 10] [--markdown]

A switch between two hosts, all three name spaces of this machine (tests/rooms.py); one call of
playbooks/conditions.yml after the other, each to another rate, read back by the role. As root, or where a
user may make name spaces.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import rooms  # type: ignore[import-not-found]  # of the tests

_RATES_BPS = (80_000_000, 40_000_000)


def main() -> None:
    """Print median and range."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, rooms.room(Path(folder)) as room:
        rooms.two_hosts_and_a_switch(room)
        took_s = [_changed(room, _RATES_BPS[number % 2]) for number in range(arguments.changes)]
    table = Table(title="A change of conditions by the role software_switch", head=("changes", "seconds"))
    table.add(str(len(took_s)), f"{statistics.median(took_s):.2f} ({min(took_s):.2f}–{max(took_s):.2f})")
    sys.stdout.write((table.markdown() if arguments.markdown else table.plain()) + "\n")


def _changed(room: Any, rate_bps: int) -> float:  # noqa: ANN401 - of the tests
    """Seconds that one call takes which sets another rate."""
    port = {"interface": "s1-eth2", "rate_bps": rate_bps, "burst_bytes": 50_000, "buffer_bytes": 500_000}
    asked = rooms.inventory(room.folder, ports=({"interface": "s1-eth1"}, port))
    began = time.monotonic()
    played = room.play("conditions.yml", asked)
    took_s = time.monotonic() - began
    if played.status != 0 or played.changed != {"s1": 1}:
        sys.exit(played.output)
    return took_s


if __name__ == "__main__":
    main()
