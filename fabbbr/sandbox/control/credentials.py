"""The credential manager: identity tokens that expire, and refresh tokens that serve once."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus

from fabbbr.sandbox import names
from fabbbr.sandbox.control import answers
from fabbbr.sandbox.control.answers import Answer, Json, RefusedError
from fabbbr.sandbox.control.request import Request
from fabbbr.sandbox.timing import Clock


class Credentials:
    """Issues and checks tokens of the one person in the one project."""

    def __init__(
        self, *, clock: Clock, hours: float, tags: tuple[str, ...], event: Callable[..., None]
    ) -> None:
        self._clock = clock
        self._lifetime = timedelta(hours=hours)
        self._tags = tags
        self._event = event
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._refresh = {self._new_refresh()}
        self._revoked: set[str] = set()

    def first(self) -> Json:
        """The token file that the portal gives out."""
        with self._lock:
            return self._issue(next(iter(self._refresh)))

    def check(self, token: str | None) -> None:
        """Raise RefusedError (401) unless this is a token that is in force."""
        if token is None:
            message = "No authorization token provided"
            raise RefusedError(message, HTTPStatus.UNAUTHORIZED)
        self._claims(token, HTTPStatus.UNAUTHORIZED)
        if token in self._revoked:
            message = "Signature has expired"
            raise RefusedError(message, HTTPStatus.UNAUTHORIZED)

    def revoke(self, token: str) -> None:
        """The token is in force no longer; a fault does this."""
        self._revoked.add(token)

    def refresh(self, request: Request) -> Answer:
        """POST /credmgr/tokens/refresh: both tokens anew, and the old refresh token is spent."""
        given = str(request.json().get("refresh_token", ""))
        project = request.one("project_id")
        by_name = request.one("project_name")
        if project not in {None, names.PROJECT_ID} or by_name not in {None, names.PROJECT_NAME}:
            message = f"User is not a member of Project: {project or by_name}"
            raise RefusedError(message)
        with self._lock:
            if given not in self._refresh:
                self._event("refresh token refused")
                message = "Refresh token is invalid or has been used already"
                raise RefusedError(message)
            self._refresh.remove(given)
            following = self._new_refresh()
            self._refresh.add(following)
            return answers.data([self._issue(following)], "tokens")

    def validate(self, request: Request) -> Answer:
        """POST /credmgr/tokens/validate: the claims, in an envelope of its own."""
        token = str(request.json().get("token", ""))
        claims = self._claims(token, HTTPStatus.INTERNAL_SERVER_ERROR)
        return Answer(200, {"token": claims, "size": 1, "status": 200, "type": "tokens"})

    def _issue(self, refresh: str) -> Json:
        import jwt

        now = self._clock.now()
        expires = now + self._lifetime
        claims = self._identity() | {
            "iat": int(now.timestamp()),
            "exp": int(expires.timestamp()),
            "jti": secrets.token_hex(8),
        }
        token = jwt.encode(claims, self._secret, algorithm="HS256")
        return {
            "id_token": token,
            "refresh_token": refresh,
            "created_at": now.strftime(names.TIME_FORMAT),
            "expires_at": expires.strftime(names.TIME_FORMAT),
            "state": "Refreshed",
            "token_hash": hashlib.sha256(token.encode()).hexdigest(),
        }

    def _claims(self, token: str, status: HTTPStatus) -> Json:
        import jwt

        try:
            return dict(jwt.decode(token, self._secret, algorithms=["HS256"]))
        except jwt.InvalidTokenError as error:
            raise RefusedError(str(error), status) from error

    def _identity(self) -> Json:
        membership = {
            f"is_{role}": role in {"member", "token_holder"}
            for role in ("creator", "lead", "member", "owner", "token_holder")
        }
        project = {
            "name": names.PROJECT_NAME,
            "uuid": names.PROJECT_ID,
            "tags": list(self._tags),
            "active": True,
            "memberships": membership,
        }
        return {
            "uuid": names.USER_ID,
            "email": names.USER_EMAIL,
            "name": names.USER_NAME,
            "sub": "http://cilogon.org/serverA/users/12345",
            "iss": "https://cilogon.org",
            "scope": "all",
            "projects": [project],
            "roles": [{"name": f"{names.PROJECT_ID}-pm"}],
        }

    @staticmethod
    def _new_refresh() -> str:
        return f"NB2HI4DT{secrets.token_hex(16)}"
