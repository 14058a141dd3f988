"""Failures on purpose: what a fault is, how it is written, and which one strikes next.

A fault is written ``KIND`` or ``KIND:key=value,key=value``, on the command line and at the double's own door.
"""

from __future__ import annotations

import threading
from typing import Literal, get_args

from pydantic import ValidationError

from fabbbr.errors import UsageError
from fabbbr.record import Record

Kind = Literal[
    "insufficient-resources",
    "no-management-ip",
    "ssh-never",
    "ssh-late",
    "ssh-rejects-key",
    "node-dies",
    "bastion-away",
    "http",
    "slow",
    "token-expired",
    "modify-error",
    "lease-ends",
]

KEYS: dict[Kind, tuple[str, ...]] = {
    "insufficient-resources": ("site", "node", "times"),
    "no-management-ip": ("node", "site"),
    "ssh-never": ("node", "site"),
    "ssh-late": ("node", "site", "seconds"),
    "ssh-rejects-key": ("node", "site"),
    "node-dies": ("node", "site", "seconds"),
    "bastion-away": ("seconds", "after"),
    "http": ("status", "when", "method", "path", "nth", "times"),
    "slow": ("seconds", "method", "path", "nth", "times"),
    "token-expired": ("nth",),
    "modify-error": ("node", "times"),
    "lease-ends": ("slice", "seconds"),
}
"""The keys that each kind knows; of ``node``, ``site`` and ``slice`` the missing one means any."""


class Fault(Record):
    """One failure. ``seconds`` and ``after`` are seconds of the machine's clock, never scaled.

    ``nth`` counts matching requests from 1, ``times`` how many in a row are struck. ``when`` says whether a
    gateway's error comes before the request had its effect or after it.
    """

    kind: Kind
    node: str | None = None
    site: str | None = None
    slice: str | None = None
    seconds: float = 10.0
    after: float = 0.0
    status: int = 502
    when: Literal["before", "after"] = "before"
    method: str | None = None
    path: str = ""
    nth: int = 1
    times: int = 1

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read ``http:status=502,path=/slices/creates``; UsageError names what is allowed."""
        kind, _, rest = text.partition(":")
        pairs = [pair.partition("=") for pair in rest.split(",") if pair]
        known = _keys_of(kind)
        unknown = [key for key, _, _ in pairs if key not in known]
        if unknown:
            message = f"the fault {kind} has no key {unknown[0]!r}; its keys: {', '.join(known)}"
            raise UsageError(message)
        try:
            return cls.model_validate({"kind": kind} | {key: value for key, _, value in pairs})
        except ValidationError as error:
            first = error.errors()[0]
            message = f"the fault {text!r}: {first['loc'][0]}: {first['msg']}; its keys: {', '.join(known)}"
            raise UsageError(message) from error

    def concerns(self, *, node: str, site: str) -> bool:
        """Whether it strikes this node."""
        return self.node in {None, node} and self.site in {None, site}

    def matches(self, method: str, path: str) -> bool:
        """Whether it strikes this request."""
        return self.method in {None, method} and self.path in path


def _keys_of(kind: str) -> tuple[str, ...]:
    for known in get_args(Kind):
        if kind == known:
            return KEYS[known]
    message = f"there is no fault {kind!r}; there are: {', '.join(KEYS)}"
    raise UsageError(message)


class Faults:
    """The faults that are waiting; each strikes as often as it says and is then spent."""

    def __init__(self, faults: tuple[Fault, ...] = ()) -> None:
        self._lock = threading.Lock()
        self._waiting = [_Waiting(fault) for fault in faults]

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._waiting.append(_Waiting(fault))

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()

    def waiting(self) -> tuple[Fault, ...]:
        """What has not been spent."""
        with self._lock:
            return tuple(entry.fault for entry in self._waiting if entry.left > 0)

    def for_node(self, kind: Kind, *, node: str, site: str) -> Fault | None:
        """The fault of this kind that strikes the node now, if any; it is one time less to come."""
        with self._lock:
            return next(
                (
                    entry.strike()
                    for entry in self._waiting
                    if entry.fault.kind == kind
                    and entry.left > 0
                    and entry.fault.concerns(node=node, site=site)
                ),
                None,
            )

    def for_slice(self, kind: Kind, name: str) -> Fault | None:
        """The fault of this kind that strikes the slice now, if any."""
        with self._lock:
            return next(
                (
                    entry.strike()
                    for entry in self._waiting
                    if entry.fault.kind == kind and entry.left > 0 and entry.fault.slice in {None, name}
                ),
                None,
            )

    def for_request(self, kind: Kind, method: str, path: str) -> Fault | None:
        """The fault of this kind that strikes this request, which counts towards ``nth``."""
        with self._lock:
            matching = [e for e in self._waiting if e.fault.kind == kind and e.fault.matches(method, path)]
            struck = [entry for entry in matching if entry.counted()]
            return struck[0].fault if struck else None


class _Waiting:
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.left = fault.times
        self._seen = 0

    def strike(self) -> Fault:
        self.left -= 1
        return self.fault

    def counted(self) -> bool:
        self._seen += 1
        if self._seen < self.fault.nth or self.left <= 0:
            return False
        self.left -= 1
        return True
