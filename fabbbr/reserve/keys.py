"""What the public half of an SSH key says of itself."""

from __future__ import annotations

import base64
import binascii

from fabbbr.errors import SpecError
from fabbbr.foreign import shown
from fabbbr.reserve.records import Key

_BITS = {"nistp256": 256, "nistp384": 384, "nistp521": 521, "ssh-ed25519": 256}
"""Of curves, and of the kind that has one size."""


def key_of(text: str, place: str) -> Key:
    """The key that the line ``text`` of a ``.pub`` file has; SpecError when it is none.

    >>> key_of("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f", "k.pub")
    Key(place='k.pub', kind='ssh-ed25519', bits=256)
    """
    try:
        kind, blob = text.split()[:2]
        fields = _fields(base64.b64decode(blob, validate=True))
        bits = _bits(kind, fields)
    except (IndexError, ValueError, binascii.Error):
        kind, bits, fields = "", 0, [b"?"]
    if fields[0] != kind.encode():
        message = f"{place}: {shown(text.strip())} is no public key of OpenSSH; name the .pub file of a key"
        raise SpecError(message)
    return Key(place=place, kind=kind, bits=bits)


def _fields(blob: bytes) -> list[bytes]:
    """RFC 4251: each with its length before it."""
    fields = []
    while blob:
        length = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + length:
            raise ValueError
        fields.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    return fields


def _bits(kind: str, fields: list[bytes]) -> int:
    if kind == "ssh-rsa":
        return int.from_bytes(fields[2], "big").bit_length()
    return _BITS.get(fields[1].decode(), 0) if kind.startswith("ecdsa-") else _BITS.get(kind, 0)
