"""A machine is cleared of what a run has left that was killed: :mod:`fabbbr.agent.clearing` there."""

from __future__ import annotations

import json
from collections.abc import Callable

from fabbbr.backends.channel import Channel
from fabbbr.backends.machine import python
from fabbbr.errors import BackendError

SILENT_S = 45.0
"""Of a run that says nothing for so long nobody is left: who coordinates says every 20 s that it lives."""
_GRACE_S = 60.0


def clear(name: str, channel: Channel, archive: str, tell: Callable[[str], None]) -> None:
    """Leave nothing of a run that was killed; ``archive`` is the agent on that machine.

    ``tell`` hears when that takes long. Raises BackendError while the machine carries out a cell of a run
    that lives.
    """
    if not _runs(channel, archive):
        return
    tell(
        f"machine {name} carries out a cell, perhaps of a run that is gone: waiting {SILENT_S:g} s for "
        "a sign of it"
    )
    if _runs(channel, archive, f"{SILENT_S:g}"):
        message = "it carries out a cell of a run that lives; wait for its end, or end it"
        raise BackendError(message)


def _runs(channel: Channel, archive: str, *silent_s: str) -> bool:
    words = (*python(archive, "agent.clearing"), channel.folder, *silent_s)
    done = channel.run(words, timeout_s=SILENT_S + _GRACE_S)
    if done.returncode != 0:
        raise BackendError(done.stderr.decode(errors="replace").strip())
    return json.loads(done.stdout)["runs"] is not None
