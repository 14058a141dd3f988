"""What this machine is, as one line of JSON: its kernel and the programs that raw files come from."""

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from typing import Any, Dict, Optional

_TOOLS = {
    "iperf3": ["iperf3", "--version"],
    "ss": ["ss", "-V"],
    "tc": ["tc", "-V"],
    "ethtool": ["ethtool", "--version"],
    "ping": ["ping", "-V"],
}
_TIMEOUT_S = 20
_CLOCK_MONOTONIC_COARSE = 6


def facts() -> Dict[str, Any]:
    """Kernel and tools; a tool that is not here is left out."""
    said = {tool: _first_line(argv) for tool, argv in _TOOLS.items()}
    tools = {tool: line for tool, line in said.items() if line is not None}
    tools["python"] = "Python %s" % platform.python_version()
    release = platform.release()
    return {
        "kernel": {
            "release": release,
            # The coarse clock moves with every tick.
            "timer_hz": round(1 / time.clock_getres(_CLOCK_MONOTONIC_COARSE)),
            "config_sha256": _digest("/boot/config-%s" % release),
        },
        "tools": tools,
    }


def _first_line(argv: "list[str]") -> Optional[str]:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


def _digest(path: str) -> Optional[str]:
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(facts()) + "\n")
