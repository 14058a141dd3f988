"""``fabbbr guest run``, as a user calls it."""

import os
import subprocess
import sys

FABBBR = (sys.executable, "-m", "fabbbr.cli", "guest", "run")


def run(*argv, cwd, options=()):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        (*FABBBR, *options, "--", *argv),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
