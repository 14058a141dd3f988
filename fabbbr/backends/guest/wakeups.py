"""The library that makes iperf3 cheap in a guest: when it is used, and where it is kept."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from fabbbr.backends.guest.kernel.build import cache_folder
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.files import sha256_of
from fabbbr.job.flows import has_threads
from fabbbr.job.records import Job

_SOURCE = Path(__file__).parent / "iperf3_wakeups.c"
_LIBRARY = "iperf3_wakeups.so"
_LOW_WATER_S = 0.008
_HIGHEST_LOW_WATER_BYTES = 65_536


def source_hash() -> str:
    """Digest of the library's source."""
    return hashlib.sha256(_SOURCE.read_bytes()).hexdigest()


def hashes() -> dict[str, str]:
    """Of the library's source, and of the library that is loaded: another compiler makes other bytes."""
    return {"sha256": source_hash(), "library_sha256": sha256_of(library_folder() / _LIBRARY)}


def library_folder() -> Path:
    """A folder that holds nothing but the library, compiled from today's source."""
    folder = cache_folder().parent / "preload" / source_hash()[:16]
    library = folder / _LIBRARY
    if library.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        made = Path(work) / _LIBRARY
        argv = ("gcc", "-O2", "-shared", "-fPIC", "-o", str(made), str(_SOURCE), "-ldl")
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            message = "gcc is missing: apt-get install build-essential"
            raise EnvironmentUnfitError(message) from None
        if done.returncode != 0:
            message = f"{_SOURCE.name} does not compile: {done.stderr.strip()}; install libc6-dev"
            raise EnvironmentUnfitError(message)
        made.replace(library)
    return folder


def environment(job: Job, iperf3_version: str) -> dict[str, str]:
    """What to add to iperf3's environment: nothing for a version whose threads neither spin nor select.

    A reader wakes up once per eight milliseconds of its share of the bottleneck, and per 64 kB at most: from
    128 kB on the receive window would be throttled.
    """
    if has_threads(iperf3_version):
        return {}
    share = job.bottleneck_bps * _LOW_WATER_S / 8 / max(len(job.flows), 1)
    bytes_ = int(min(max(share, 1), _HIGHEST_LOW_WATER_BYTES))
    return {"LD_PRELOAD": f"/run/fabbbr/preload/{_LIBRARY}", "FABBBR_LOWAT": str(bytes_)}
