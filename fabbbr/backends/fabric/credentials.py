"""What a user must have to use FABRIC, read and judged before FABRIC is asked: token, keys, host names."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from fabbbr.backends.fabric.answers import Settings, instant
from fabbbr.errors import EnvironmentUnfitError, SpecError
from fabbbr.foreign import inline, shown
from fabbbr.record import Record
from fabbbr.reserve.keys import key_of
from fabbbr.reserve.records import Key

SETUP = "run: fabric-cli configure setup"
"""It logs in, makes a token and both keys, and writes the configuration."""
EARLY = timedelta(minutes=30)
"""How long before its end a token is renewed."""
_SHORTEST_RSA_BITS = 3072
_CURVES = ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]+")


class Token(Record):
    """What the token file holds."""

    id_token: str
    refresh_token: str | None = None
    ends: datetime | None = None
    """None: nothing that can be read says so."""

    def ends_within(self, left: timedelta, now: datetime) -> bool:
        """Whether it has no more than ``left`` to live."""
        return self.ends is not None and self.ends - now <= left


def read_token(path: Path) -> Token:
    """The user's token; raise EnvironmentUnfitError when there is none."""
    try:
        held: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        message = f"no FABRIC token at {inline(str(path))}; {SETUP}"
        raise EnvironmentUnfitError(message) from None
    except (OSError, ValueError) as error:
        message = f"the FABRIC token in {inline(str(path))} cannot be read ({error}); {SETUP}"
        raise EnvironmentUnfitError(message) from None
    if not isinstance(held, dict) or not isinstance(held.get("id_token"), str):
        message = f"{inline(str(path))} holds no id_token; {SETUP}"
        raise EnvironmentUnfitError(message)
    return Token(
        id_token=held["id_token"],
        refresh_token=held.get("refresh_token"),
        ends=instant(held.get("expires_at")) or _end_in(held["id_token"]),
    )


def unusable(path: Path, ends: datetime | None, now: datetime) -> EnvironmentUnfitError:
    """That the token is of no use any more: it has ended, or FABRIC does not take it."""
    late = ends is not None and ends <= now
    why = f"expired at {ends:%Y-%m-%d %H:%M %Z}" if late else "is not accepted by FABRIC"
    message = f"the token in {inline(str(path))} {why}; {SETUP}, then do this again"
    return EnvironmentUnfitError(message)


def _end_in(id_token: str) -> datetime | None:
    """What a JSON Web Token itself says; it is read and not verified, which is the server's business."""
    try:
        payload = id_token.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(int(said["exp"]), timezone.utc)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError):
        return None


def require_hosts(hosts: Mapping[str, str | None]) -> None:
    """Raise EnvironmentUnfitError unless each setting is a bare name: fablib adds scheme and port."""
    for setting, host in hosts.items():
        if not _HOST.fullmatch(host or ""):
            message = (
                f"{setting} is {shown(host)}: give the bare name of the host, without https:// or a port"
            )
            raise EnvironmentUnfitError(message)


def require_keys(settings: Settings) -> str:
    """The public key for the machines; raise EnvironmentUnfitError when a key would be refused later."""
    private, bastion = Path(settings.slice_key), Path(settings.bastion_key)
    for path, role in ((private, "slice"), (bastion, "bastion")):
        _require_private(path, role)
    if private.resolve() == bastion.resolve():
        message = (
            f"{inline(str(private))} is both slice and bastion key, which FABRIC does not take; "
            "set FABRIC_SLICE_PRIVATE_KEY_FILE and FABRIC_BASTION_KEY_LOCATION to two files"
        )
        raise EnvironmentUnfitError(message)
    public = Path(settings.slice_public_key)
    try:
        text = public.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        message = f"the public slice key {inline(str(public))} cannot be read ({error}); {SETUP}"
        raise EnvironmentUnfitError(message) from None
    require_public_key(text, str(public))
    return text


def _require_private(path: Path, role: str) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        message = f"the {role} key {inline(str(path))} cannot be read ({error.strerror}); {SETUP}"
        raise EnvironmentUnfitError(message) from None
    if mode & 0o077:
        message = f"others may read the {role} key, and ssh will refuse it: chmod 600 {inline(str(path))}"
        raise EnvironmentUnfitError(message)


def require_public_key(text: str, place: str) -> Key:
    """Raise EnvironmentUnfitError unless FABRIC takes a key of this kind and length."""
    try:
        key = key_of(text, inline(place))
    except SpecError as error:
        message = f"{error}, or {SETUP}"
        raise EnvironmentUnfitError(message) from error
    if key.kind in _CURVES or (key.kind == "ssh-rsa" and key.bits >= _SHORTEST_RSA_BITS):
        return key
    found = (
        f"an RSA key of {key.bits} bits" if key.kind == "ssh-rsa" else f"a key of the kind {shown(key.kind)}"
    )
    message = (
        f"{inline(place)} holds {found}; FABRIC takes RSA of at least {_SHORTEST_RSA_BITS} bits or ECDSA; "
        f"make one: ssh-keygen -t rsa -b {_SHORTEST_RSA_BITS} -f FILE, and set FABRIC_SLICE_PRIVATE_KEY_FILE "
        "and FABRIC_SLICE_PUBLIC_KEY_FILE to FILE and FILE.pub"
    )
    raise EnvironmentUnfitError(message)


def slice_keys(settings: Settings) -> tuple[Key, ...]:
    """The key that machines would be made with; none when it is still to be made, or cannot be read."""
    path = Path(settings.slice_public_key)
    try:
        return (key_of(path.read_text("ascii"), inline(str(path))),)
    except (OSError, ValueError, SpecError):
        return ()


def fingerprint(text: str) -> str:
    """Of a public key, as FABRIC's portal lists it; ValueError or IndexError when it is none."""
    digest = hashlib.md5(base64.b64decode(text.split()[1], validate=True), usedforsecurity=False).hexdigest()
    return "MD5:" + ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def require_bastion_key(settings: Settings, account: Mapping[str, Any], now: datetime) -> None:
    """Raise EnvironmentUnfitError unless the portal knows the bastion key, and it has not ended there.

    ``account`` is the portal's record of the user. Without a public key beside the private one all is well.
    """
    public = Path(f"{settings.bastion_key}.pub")
    try:
        mine = fingerprint(public.read_text("ascii"))
    except (OSError, ValueError, IndexError):
        return
    known = [key for key in account.get("sshkeys") or () if key.get("fabric_key_type") in (None, "bastion")]
    same = [key for key in known if key.get("fingerprint") == mine]
    if any(_end_of(key) is None or _end_of(key) > now for key in same):  # type: ignore[operator]
        return
    why = f"expired on {_end_of(same[0]):%Y-%m-%d}" if same else "is not known to FABRIC's portal"
    message = f"the bastion key {inline(settings.bastion_key)} {why}; remove it, and {SETUP}"
    raise EnvironmentUnfitError(message)


def _end_of(key: Mapping[str, Any]) -> datetime | None:
    try:
        ends = datetime.fromisoformat(str(key.get("expires_on")))
    except ValueError:
        return None
    return ends if ends.tzinfo else ends.replace(tzinfo=timezone.utc)
