"""What a run does when the system refuses it something: calls of each kind; all with ``make sweep``."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
PER_KIND = 2


def test_a_run_keeps_its_promises_whatever_call_fails():
    """The sweep ends with an error when a promise is broken, and says which."""
    done = subprocess.run(
        (sys.executable, "-m", "faults.sweep", "--at-most", str(PER_KIND)),
        cwd=TESTS, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    table = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    assert all(int(failed) > 0 for _, _, _, failed, *_ in table), done.stdout
