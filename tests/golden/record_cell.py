"""Records the golden cell anew: ``python -m golden.record_cell`` in tests/, with a guest image.

cell.json stays; its raw files are what a guest of today leaves for it.
"""

import contextlib
import shutil
import tempfile
import threading
from pathlib import Path

from golden_cell import CELL, RAW

from fabbbr.backends.base import Task
from fabbbr.backends.registry import open_backend
from fabbbr.certify.certificate import certify
from fabbbr.certify.evidence import Evidence
from fabbbr.job.build import prepare


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(open_backend("guest", None)) as backend:
        work = Path(folder)
        (work / "raw").mkdir()
        prepared = prepare(CELL, backend.testbed)
        backend.execute(
            Task(
                job=prepared.job, work=work, seed=CELL.seed, slot=0, wall_limit_s=120,
                cancelled=threading.Event(), progress=lambda _: None,
            )
        )  # fmt: skip
        certificate = certify(prepared, Evidence.read(work / "raw"), lossy_cells=1)
        wrong = [check for check in certificate.checks if not check.passed]
        assert not wrong, wrong
        shutil.rmtree(RAW)
        shutil.copytree(work / "raw", RAW)


if __name__ == "__main__":
    main()
