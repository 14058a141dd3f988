"""What FABRIC says when it refuses, and what to do about it."""

from __future__ import annotations

import json
import re
from typing import Any

from fabbbr.foreign import inline

_LONGEST = 600
_TAG = re.compile(r"\b(?:Slice|VM|Component|Net|Switch|Storage)\.[A-Za-z0-9_.]*[A-Za-z0-9_]")
_INSTEAD: tuple[tuple[str, str], ...] = (
    ("Slice.Multisite", "put all machines at one site"),
    ("Slice.NoLimitLifetime", "ask for a shorter lease"),
    ("VM.", "take a smaller size, of at most 2 cores, 10 GB of memory and 10 GB of disk"),
    ("Component.SmartNIC", "take NIC_Basic"),
    ("Net.NoLimitBW", "ask for at most 10 Gbit/s"),
)
_ELSEWHERE = "choose another site or a smaller size, delete the slice and create it again"
_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        r"does not exist|unknown site",
        "choose one of FABRIC's sites as it names them now, delete the slice and create it again",
    ),
    (r"has no slices|not found|already closed", "it is gone: create it again"),
    (r"already exists", "choose another name, or delete that slice in FABRIC's portal"),
    (
        r"no candidates? nodes? found",
        "no worker there has all that, or the site is unknown or in maintenance: " + _ELSEWHERE,
    ),
    (
        r"insufficient resources|not available|no capacity",
        "others have them now: " + _ELSEWHERE,
    ),
    (r"maintenance", "choose another site, or wait until it is over"),
    (r"not yet stable", "it is still changing: wait, and do it again"),
    (r"shorter than current", "ask for a later end"),
    (r"ssh key|public key", "give an RSA key of at least 3072 bits or an ECDSA key"),
)
_GENERAL = "run it again; if it stays so, see FABRIC's state at portal.fabric-testbed.net"


def details(body: str) -> str | None:
    """The words of an error answer; None when it is not one of FABRIC's own but that of a gateway before it.

    Long answers come to us cut, so what is no JSON any more is searched for its first words.

    >>> details('{"errors": [{"details": "Slice a already exists", "message": "Error"}]}')
    'Slice a already exists'
    >>> details('<html>502 Bad Gateway</html>')
    """
    try:
        answer: Any = json.loads(body)
    except ValueError:
        cut = re.search(r'"details":\s*"((?:[^"\\]|\\.)*)', body)
        return cut[1] if cut else None
    errors = answer.get("errors") if isinstance(answer, dict) else None
    if not isinstance(errors, list):
        return None
    said = [
        str(error.get("details") or error.get("message") or "") for error in errors if isinstance(error, dict)
    ]
    return "; ".join(filter(None, said)) or None


def remedy(said: str) -> str:
    """What to do about FABRIC's words.

    >>> remedy("Slice cap already exists")
    "choose another name, or delete that slice in FABRIC's portal"
    """
    if "lacking" in said or "policy violation" in said.lower():
        return _permission(said)
    for pattern, words in _REMEDIES:
        if re.search(pattern, said, re.IGNORECASE):
            return words
    return _GENERAL


def explained(said: str) -> str:
    """FABRIC's words within a line, and the remedy."""
    return f"{brief(said)}; {remedy(said)}"


def brief(said: str) -> str:
    """Words from outside, within a line and not longer than one reads."""
    words = inline(" ".join(said.split()))
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"


def _permission(said: str) -> str:
    tags = tuple(dict.fromkeys(_TAG.findall(said)))
    asked = " or ".join(tags) if tags else "the permission"
    instead = next((words for start, words in _INSTEAD for tag in tags if tag.startswith(start)), None)
    ask = f"let the project's owner request {asked} in FABRIC's portal"
    return f"{instead}, or {ask}" if instead else ask
