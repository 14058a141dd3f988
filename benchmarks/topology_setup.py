"""How long the guest takes to bring up a topology: nodes and cables alone, and a cell that hardly sends."""

from __future__ import annotations

import tempfile
import threading
from functools import partial
from pathlib import Path

from benchmarks.guest_path import SMALLEST, experiment_text
from benchmarks.meter import Cost, Meter, in_own_process
from fabbbr.backends.guest.cpus import Cpus
from fabbbr.backends.guest.image.found import found_image
from fabbbr.backends.guest.machine import Machine, Watch, boot
from fabbbr.backends.keeper import Keeper
from fabbbr.backends.registry import DEFAULT, described
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.job.build import prepare
from fabbbr.laboratory import Request, planned

_INIT = Path(__file__).parent / "topology_init.sh"
_LIMIT_S = 300.0
_MEMORY_BYTES = 2 << 30


def set_up(slice_: str, *, build: bool) -> Cost:
    """Boot a guest, build the network of ``slice_`` in it (or not), power off."""
    return in_own_process(partial(_boot, slice_=slice_, build=build))


def _boot(meter: Meter, *, slice_: str, build: bool) -> Cost:
    image = found_image()
    if image is None:
        message = "there is no guest image yet; build it once with: fabbbr guest build"
        raise EnvironmentUnfitError(message)
    kernel = image.kernel
    with tempfile.TemporaryDirectory(prefix="fabbbr-benchmark-") as place:
        file, work = Path(place) / "benchmark.yaml", Path(place) / "work"
        file.write_text(experiment_text(SMALLEST, slice_=slice_), encoding="utf-8")
        (work / "raw").mkdir(parents=True)
        cell = planned(Request(experiment=str(file))).cells[0]
        (work / "job.json").write_text(
            prepare(cell, described(DEFAULT, None)).job.model_dump_json(), encoding="utf-8"
        )
        keeper = Keeper()
        meter.start()
        machine = Machine(
            kernel=kernel.binary,
            seccomp=kernel.seccomp,
            seed=1,
            memory_bytes=_MEMORY_BYTES,
            clock_limit_s=_LIMIT_S,
            init=_INIT,
            environment={"FABBBR_BUILD": str(int(build))},
        )
        watch = Watch(
            wall_limit_s=_LIMIT_S,
            stall_limit_s=_LIMIT_S,
            progress=lambda _: None,
            cancelled=threading.Event(),
        )
        try:
            boot(machine, work, watch, keeper, Cpus())
        finally:
            keeper.close()
        return meter.stop()
