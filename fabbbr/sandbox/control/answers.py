"""What FABRIC's services answer: envelopes, errors, and how values are written in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

Json = dict[str, object]

_NAMES = {
    HTTPStatus.BAD_REQUEST: "Bad Request",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "Not Found",
}


class Answer(NamedTuple):
    """A status and the JSON that goes with it; ``error`` is repeated in a header."""

    status: int
    body: Json
    error: str | None = None


class RefusedError(Exception):
    """A request that is answered with an error; where FABRIC says nothing better it says 500."""

    def __init__(self, details: str, status: HTTPStatus = HTTPStatus.INTERNAL_SERVER_ERROR) -> None:
        super().__init__(details)
        self.status = status


def data(items: Sequence[Mapping[str, object]], kind: str) -> Answer:
    """The envelope of the credential manager and the orchestrator."""
    return Answer(200, {"data": _present(items), "size": len(items), "status": 200, "type": kind})


def results(items: Sequence[Mapping[str, object]], kind: str) -> Answer:
    """The envelope of the core API."""
    return Answer(200, {"results": list(items), "size": len(items), "status": 200, "type": kind})


def no_content(details: str) -> Answer:
    """That something was done."""
    return data([{"details": details}], "no_content")


def refusal(status: int, details: str) -> Answer:
    """An error of any of the services."""
    named = _NAMES.get(HTTPStatus(status), "Internal Server Error")
    body: Json = {
        "errors": [{"details": details, "message": named}],
        "size": 1,
        "status": status,
        "type": "error",
    }
    return Answer(status, body, details)


def _present(items: Sequence[Mapping[str, object]]) -> list[object]:
    return [_without_none(item) for item in items]


def _without_none(value: object) -> object:
    """FABRIC leaves keys out whose value is missing."""
    if isinstance(value, Mapping):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value]
    return value
