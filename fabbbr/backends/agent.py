"""The agent as backends see it: its digest, and what it leaves behind."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from fabbbr.backends.base import HEARTBEAT, JOB, OUTCOME
from fabbbr.errors import BackendError

_HERE = Path(__file__).parent
AGENT = _HERE.parent / "agent"
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Words before an agent that shares its machine: in a process name space of its own, all of which the kernel
ends with its first process."""


def agent_hash() -> str:
    """Digest of the agent."""
    digest = hashlib.sha256()
    for file in sorted(AGENT.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Outcome(BaseModel):
    """What the agent says at its end."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    ok: bool
    elapsed_s: float
    stage: str = ""
    error: str = ""
    files: dict[str, str] = {}
    """Of a part: SHA-256 of each raw file."""


def read_outcome(work: Path) -> float:
    """Seconds the job took on its clock; raise BackendError when a stage failed.

    Removes the agent's own files.
    """
    try:
        told = (work / OUTCOME).read_bytes()
    except FileNotFoundError:
        told = b""
    outcome = outcome_of(told)
    for name in (OUTCOME, JOB, HEARTBEAT):
        (work / name).unlink(missing_ok=True)
    shutil.rmtree(work / "tmp", ignore_errors=True)
    return outcome.elapsed_s


def outcome_of(told: bytes) -> Outcome:
    """What the agent said at its end; raise BackendError when it said nothing, or that a stage failed."""
    if not told:
        message = "the agent left no outcome; see raw/console.log"
        raise BackendError(message)
    try:
        outcome = Outcome.model_validate_json(told)
    except ValidationError as error:
        message = f"the agent left no usable {OUTCOME} ({error.errors()[0]['msg']}); see raw/console.log"
        raise BackendError(message) from None
    if not outcome.ok:
        message = f"the agent failed at stage {outcome.stage!r}: {outcome.error}"
        raise BackendError(message)
    return outcome
