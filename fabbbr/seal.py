"""JSON records that carry the digest of their own bytes, so that damage and edits by hand are noticed.

The digest is the record's second line, and that of the record without this line:
``sed 2d run.json | sha256sum`` gives it. It keeps nothing from somebody who computes it anew.
"""

from __future__ import annotations

import hashlib
import re

_HEAD = re.compile(rb'\{\n "digest": "([0-9a-f]{64})",\n')


def sealed(record: str) -> str:
    """``record``, a JSON object of several lines, with the digest of itself as its first key."""
    digest = hashlib.sha256(record.encode()).hexdigest()
    return record.replace("{\n", f'{{\n "digest": "{digest}",\n', 1)


def opened(text: bytes) -> tuple[bytes, bool]:
    """The record without its digest, and whether it has one; raise ValueError when it is of other bytes."""
    head = _HEAD.match(text)
    if head is None:
        return text, False
    record = b"{\n" + text[head.end() :]
    if hashlib.sha256(record).hexdigest().encode() != head[1]:
        message = "its digest is not that of its content"
        raise ValueError(message)
    return record, True
