"""Records the golden cells anew: ``python -m golden.record_cell`` in tests/, with a guest image.

Each cell.json stays; its raw files are what a guest of today leaves for it.
"""

import contextlib
import shutil
import tempfile
import threading
from pathlib import Path

from golden_cell import CELL, RAW, WITH_OFFLOADS, WITH_OFFLOADS_RAW

from fabbbr.backends.base import Task
from fabbbr.backends.registry import open_backend
from fabbbr.certify.certificate import certify
from fabbbr.certify.evidence import Evidence
from fabbbr.job.build import prepare
from fabbbr.model import Cell


def main() -> None:
    for cell, raw in ((CELL, RAW), (WITH_OFFLOADS, WITH_OFFLOADS_RAW)):
        record(cell, raw)


def record(cell: Cell, raw: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(open_backend("guest", None)) as backend:
        work = Path(folder)
        (work / "raw").mkdir()
        prepared = prepare(cell, backend.testbed)
        backend.execute(
            Task(
                job=prepared.job, work=work, seed=cell.seed, wall_limit_s=120,
                cancelled=threading.Event(), progress=lambda _: None,
            )
        )  # fmt: skip
        certificate = certify(prepared, Evidence.read(work / "raw"), lossy_links=1)
        wrong = [check for check in certificate.checks if not check.passed]
        assert not wrong, wrong
        shutil.rmtree(raw, ignore_errors=True)
        shutil.copytree(work / "raw", raw)


if __name__ == "__main__":
    main()
