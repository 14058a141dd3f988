"""examples/bisect/step: what git bisect is told of each end that building, running and comparing can have."""

import os
import subprocess
from pathlib import Path

import pytest

STEP = Path(__file__).resolve().parents[2] / "examples" / "bisect" / "step"
FABBBR = """\
#!/bin/sh
echo "$@" >> "$LOG"
case $1 in kernel) exit $BUILT ;; run) exit $RAN ;; gate) exit $JUDGED ;; esac
"""
GOOD, BAD, CANNOT_TELL = 0, 1, 125


@pytest.mark.parametrize(
    ("built", "ran", "judged", "told"),
    [
        (0, 0, 0, GOOD),
        (0, 0, 11, BAD),
        (0, 10, 0, GOOD),  # some cells are not certified: the gate says whether that is too many
        (0, 10, 11, BAD),
        (6, 0, 0, CANNOT_TELL),
        (0, 5, 0, CANNOT_TELL),
        (0, 130, 0, CANNOT_TELL),
        (0, 0, 9, CANNOT_TELL),
    ],
)
def test_git_is_told_good_bad_or_that_it_cannot_be_told(tmp_path, built, ran, judged, told):
    fabbbr = tmp_path / "fabbbr"
    fabbbr.write_text(FABBBR, encoding="utf-8")
    fabbbr.chmod(0o755)
    log = tmp_path / "log"
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log), "TMPDIR": str(tmp_path),
        "BUILT": str(built), "RAN": str(ran), "JUDGED": str(judged),
    }  # fmt: skip
    done = subprocess.run((str(STEP), "mine.yaml", "../good"), env=environment, check=False, timeout=30)
    assert done.returncode == told
    calls = log.read_text(encoding="utf-8").splitlines()
    assert calls[0] == "kernel build --source . --commit HEAD --name bisect"
    if len(calls) == 3:
        assert calls[1].startswith("run mine.yaml --set kernel=bisect --out ")
        assert calls[2].startswith("gate ../good --against ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fabbbr", "log"]
