"""How fast raw output is read, beside the obvious ways of doing it. Prints a Markdown table.

Usage: python benchmarks/parse.py [sockets in thousands, default 100]

One core, CPU seconds, best of three. The archive of ss is the capture of tests/golden repeated.
Peak memory is that of a child process that streams the archive from a file, less what it holds
before. Linux only (it reads /proc).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HOME = Path(__file__).parent.parent
sys.path[:0] = [str(HOME), str(HOME / "analysis")]

from fabbbr_analysis.parse.iperf3 import parse_iperf3
from fabbbr_analysis.parse.ss import CHUNK_BYTES, parse_ss

CAPTURE = HOME / "tests" / "golden" / "sockets.rivals.a.txt"
TOKEN = re.compile(rb"([a-z_]+):([0-9.]+)(?:/([0-9.]+))?|(send|pacing_rate|delivery_rate) ([0-9]+)bps")
STREAMS, INTERVALS = 128, 600


def cpu_seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def read_sockets(path: Path) -> int:
    with path.open("rb") as file:
        return sum(len(batch) for batch in parse_ss(iter(lambda: file.read(CHUNK_BYTES), b""), source="ss"))


def read_sockets_by_regex(path: Path) -> int:
    rows = 0
    with path.open("rb") as file:
        for line in file:
            _ = {match[1] or match[4]: match[2] or match[5] for match in TOKEN.finditer(line)}
            rows += 1
    return rows


def archive(path: Path, sockets: int) -> int:
    """Write at least ``sockets`` lines; return how many."""
    text = CAPTURE.read_bytes()
    lines = text.count(b"\n")
    times = -(-sockets // lines)
    with path.open("wb") as file:
        for _ in range(times):
            file.write(text)
    return times * lines


def peak_bytes(path: Path) -> int:
    """Memory that reading ``path`` takes, in a process of its own."""
    child = subprocess.run(
        [sys.executable, __file__, "--peak", str(path)], check=True, capture_output=True, text=True
    )
    return int(child.stdout)


def print_peak(path: Path) -> None:
    """Print the growth of the resident set in bytes, after the libraries have been loaded by a first read."""
    list(parse_ss([CAPTURE.read_bytes()], source="ss"))
    Path("/proc/self/clear_refs").write_text("5")  # proc(5): the peak starts anew
    before = status_bytes("VmRSS")
    read_sockets(path)
    print(status_bytes("VmHWM") - before)


def status_bytes(key: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.findall(rf"{key}:\s+(\d+) kB", status)[0]) * 1024


def iperf3_report() -> bytes:
    document = json.loads((HOME / "tests" / "golden" / "iperf3-normal.client.json").read_bytes())
    row = document["intervals"][0]["streams"][0]
    document["start"]["connected"] = [{"socket": socket} for socket in range(STREAMS)]
    document["intervals"] = [
        {"streams": [row | {"socket": socket, "start": start, "end": start + 1} for socket in range(STREAMS)]}
        for start in range(INTERVALS)
    ]
    return json.dumps(document, indent="\t").encode()


def main() -> None:
    asked = int(sys.argv[1]) * 1000 if len(sys.argv) > 1 else 100_000
    report = iperf3_report()
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.txt", Path(folder) / "large.txt"
        sockets, more = archive(small, asked), archive(large, 4 * asked)
        rows = [
            ("ss, parse_ss", f"{sockets / cpu_seconds(lambda: read_sockets(small)):,.0f} sockets per CPU-s"),
            (
                "ss, a regular expression per line",
                f"{sockets / cpu_seconds(lambda: read_sockets_by_regex(small)):,.0f} sockets per CPU-s",
            ),
            (f"ss, memory for {sockets:,} sockets", f"{peak_bytes(small) / 1e6:.0f} MB"),
            (f"ss, memory for {more:,} sockets", f"{peak_bytes(large) / 1e6:.0f} MB"),
        ]
    size = f"{STREAMS} streams × {INTERVALS} intervals, {len(report) / 1e6:.0f} MB"
    rows += [
        (
            f"iperf3 ({size}), parse_iperf3, to columns",
            f"{cpu_seconds(lambda: parse_iperf3(report, source='iperf3')):.2f} CPU-s",
        ),
        (f"iperf3 ({size}), json.loads alone", f"{cpu_seconds(lambda: json.loads(report)):.2f} CPU-s"),
    ]
    glued = b"{}" * 1_000_000
    rows.append(
        (
            f"iperf3, {len(glued) / 1e6:.0f} MB of {{}} glued together",
            f"{cpu_seconds(lambda: parse_iperf3(glued, source='iperf3')):.2f} CPU-s",
        )
    )
    print("| what | figure |\n|---|---|")
    for what, figure in rows:
        print(f"| {what} | {figure} |")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if sys.argv[1:2] == ["--peak"]:
        print_peak(Path(sys.argv[2]))
    else:
        main()
