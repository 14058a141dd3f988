"""The core API: who somebody is, and the keys that FABRIC makes for them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from uuid import uuid4

from fabbbr.sandbox import names
from fabbbr.sandbox.control import answers
from fabbbr.sandbox.control.answers import Answer, Json, RefusedError
from fabbbr.sandbox.control.request import Request
from fabbbr.sandbox.timing import Clock

_COMMENT = re.compile(r"[\w\-._@()]{5,100}")
_KINDS = ("sliver", "bastion")
_LIFETIMES = {"sliver": timedelta(days=730), "bastion": timedelta(days=180)}


class People:
    """The one person; ``admit`` is told of every bastion key there is."""

    def __init__(
        self, *, clock: Clock, tags: tuple[str, ...], admit: Callable[[tuple[str, ...]], None]
    ) -> None:
        self._clock = clock
        self._tags = tags
        self._admit = admit
        self._lock = threading.Lock()
        self._keys: list[Json] = []
        self._bastion: list[str] = []

    def whoami(self, _request: Request) -> Answer:
        """GET /whoami."""
        return answers.results([self._identity()], "whoami")

    def person(self, request: Request, uuid: str) -> Answer:
        """GET /people/{uuid}; keys and login are shown to the person only."""
        if uuid != names.USER_ID:
            message = f"No match for People with uuid = '{uuid}'"
            raise RefusedError(message, HTTPStatus.NOT_FOUND)
        record = self._identity() | {"affiliation": "Example University", "registered_on": None}
        if request.one("as_self") == "true":
            record |= {"bastion_login": names.BASTION_LOGIN, "sshkeys": list(self._keys)}
        return answers.results([record], "people.details")

    def people(self, request: Request) -> Answer:
        """GET /people?search=TEXT."""
        found = [self._identity()] if (request.one("search") or "") in names.USER_EMAIL else []
        return answers.results(found, "people")

    def projects(self, _request: Request) -> Answer:
        """GET /projects."""
        return answers.results([self._project()], "projects")

    def project(self, _request: Request, uuid: str) -> Answer:
        """GET /projects/{uuid}."""
        if uuid != names.PROJECT_ID:
            message = f"No match for Project with uuid = '{uuid}'"
            raise RefusedError(message, HTTPStatus.NOT_FOUND)
        return answers.results([self._project()], "projects.details")

    def new_key(self, request: Request) -> Answer:
        """POST /sshkeys: FABRIC makes a pair and gives the private half out once."""
        from fss_utils.sshkey import FABRICSSHKey

        body = request.json()
        comment, kind = str(body.get("comment", "")), str(body.get("keytype", ""))
        if kind not in _KINDS or _COMMENT.fullmatch(comment) is None:
            message = f"keytype has to be one of {_KINDS}, comment to match {_COMMENT.pattern}"
            raise RefusedError(message, HTTPStatus.BAD_REQUEST)
        key = FABRICSSHKey.generate(comment, "rsa")
        private, public = key.as_keypair()
        now = self._clock.now()
        record: Json = {
            "uuid": str(uuid4()),
            "comment": comment,
            "description": body.get("description"),
            "fabric_key_type": kind,
            "fingerprint": key.get_fingerprint(),
            "ssh_key_type": key.name,
            "public_key": key.public_key,
            "created_on": now.isoformat(),
            "expires_on": (now + _LIFETIMES[kind]).isoformat(),
        }
        with self._lock:
            self._keys.append(record)
            if kind == "bastion":
                self._bastion.append(public)
                self._admit(tuple(self._bastion))
        return answers.results([{"private_openssh": private, "public_openssh": public}], "sshkeys")

    @staticmethod
    def _identity() -> Json:
        return {"uuid": names.USER_ID, "email": names.USER_EMAIL, "name": names.USER_NAME}

    def _project(self) -> Json:
        return {
            "uuid": names.PROJECT_ID,
            "name": names.PROJECT_NAME,
            "tags": list(self._tags),
            "active": True,
            "expires_on": (self._clock.now() + timedelta(days=365)).isoformat(),
        }
