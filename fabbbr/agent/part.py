"""Carries out one part of a job on this machine: ``part.py FOLDER PATIENCE_S``.

Whoever starts it may go away. FOLDER has ``job.json`` and gets what lab leaves; ``alive`` says twice a second
that this process lives; stages are agreed on as :mod:`agent.meeting` has it. The coordinator writes ``coordinator``
anew now and then: when it has been silent for PATIENCE_S, or writes ``abort``, the part stops, gives back
what it took, and says why. ``outcome.json`` is last, with the SHA-256 of each raw file.

The file ``lock`` beside FOLDER is held by the part that runs: this machine carries out one at a time. A second start of the
same part does nothing.
"""

import fcntl
import hashlib
import json
import os
import signal
import sys
import threading
import time
from typing import IO, Any, Dict, List, NoReturn, Optional

from . import lab, network
from .lines import read_line, write_line
from .meeting import Meeting

_BEAT_S = 0.5


class StoppedError(lab.StageError):
    """Somebody asked this part to stop."""


class _Watch(threading.Thread):
    """Says that the part lives, and stops it when it should."""

    def __init__(self, folder: str, patience_s: float) -> None:
        super().__init__(daemon=True)
        self.reason: Optional[str] = None
        self._folder = folder
        self._patience_s = patience_s
        self._heard = (time.monotonic(), "")

    def run(self) -> None:
        """Until the process ends."""
        while True:
            write_line(os.path.join(self._folder, "alive"), "%.3f" % time.monotonic())
            if self.reason is None:
                self.reason = self._why_stop()
                if self.reason is not None:
                    os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(_BEAT_S)

    def _why_stop(self) -> Optional[str]:
        abort = read_line(os.path.join(self._folder, "abort"))
        if abort is not None:
            return abort
        now = time.monotonic()
        said = read_line(os.path.join(self._folder, "coordinator")) or ""
        if said != self._heard[1]:
            self._heard = (now, said)
        if now - self._heard[0] > self._patience_s:
            return "no word from the coordinator for %g s" % self._patience_s
        return None


def main(argv: List[str]) -> int:
    """Exit status 0 when the part was carried out, or runs already."""
    folder, patience = os.path.abspath(argv[0]), float(argv[1])
    outcome_path = os.path.join(folder, "outcome.json")
    with open(os.path.join(os.path.dirname(folder), "lock"), "a+") as lock:
        runs = held_by(lock)
        if os.path.exists(outcome_path) or runs == folder:
            return 0
        why_not = _why_not(folder, runs)
        if why_not is None:
            lock.seek(0)
            lock.truncate()
            lock.write(folder)
            lock.flush()
            outcome = _carry_out(folder, patience)
        else:
            outcome = {"ok": False, "stage": "start", "error": why_not, "elapsed_s": 0.0}
        write_line(outcome_path, json.dumps(outcome))
    return 0 if outcome["ok"] else 1


def held_by(lock: IO[str]) -> Optional[str]:
    """The folder of the part that runs; None when none does, and then the lock is ours."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        return lock.read()
    return None


def _why_not(folder: str, runs: Optional[str]) -> Optional[str]:
    if runs is not None:
        return "this machine carries out %s; wait for its end" % (runs or "another part")
    if os.path.exists(os.path.join(folder, "raw")):
        return "the agent was killed while it carried out this part"
    return None


def _carry_out(folder: str, patience_s: float) -> Dict[str, Any]:
    raw = os.path.join(folder, "raw")
    os.mkdir(raw)
    watch = _Watch(folder, patience_s)

    def stop(number: int, _frame: Any) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise StoppedError(watch.reason or "stopped by signal %d" % number)

    signal.signal(signal.SIGTERM, stop)
    try:
        watch.start()
        outcome = lab.carry_out(os.path.join(folder, "job.json"), folder, Meeting(folder), network.built)
    except StoppedError as error:
        # Before lab had begun, or after it had ended.
        outcome = {"ok": False, "stage": "start", "error": str(error), "elapsed_s": 0.0}
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return dict(outcome, files={name: _sha256(os.path.join(raw, name)) for name in sorted(os.listdir(raw))})


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
