"""A request as a route sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

from fabbbr.sandbox.control.answers import Json, RefusedError


class Request(NamedTuple):
    """Method, host, path, the query with all its values, the body, and the bearer's token if there is one."""

    method: str
    host: str
    path: str
    query: Mapping[str, Sequence[str]]
    body: bytes
    token: str | None

    def one(self, key: str) -> str | None:
        """The first value of a key of the query."""
        return next(iter(self.query.get(key, ())), None)

    def many(self, key: str) -> Sequence[str]:
        """All values of a key of the query."""
        return self.query.get(key, ())

    def required(self, key: str) -> str:
        """The value of a key that has to be there."""
        value = self.one(key)
        if value is None:
            message = f"Missing query parameter '{key}'"
            raise RefusedError(message, HTTPStatus.BAD_REQUEST)
        return value

    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", errors="replace")

    def json(self) -> Json:
        """The body as a JSON object."""
        try:
            value = json.loads(self.body)
        except ValueError as error:
            message = f"Request body is not valid JSON: {error}"
            raise RefusedError(message, HTTPStatus.BAD_REQUEST) from error
        if not isinstance(value, dict):
            message = "Request body is not an object"
            raise RefusedError(message, HTTPStatus.BAD_REQUEST)
        return value
