"""All services behind one door: which route is whose, who may come in, and the failures of a gateway."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING

from fabbbr.sandbox import names
from fabbbr.sandbox.control import answers
from fabbbr.sandbox.control.admin import Admin
from fabbbr.sandbox.control.answers import Answer, RefusedError
from fabbbr.sandbox.control.credentials import Credentials
from fabbbr.sandbox.control.orchestrator import Orchestrator
from fabbbr.sandbox.control.people import People
from fabbbr.sandbox.control.request import Request
from fabbbr.sandbox.faults import Faults
from fabbbr.sandbox.journal import Journal

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment
    from werkzeug.wrappers import Response

Route = Callable[..., Answer]
_GATEWAY = {502: "502 Bad Gateway", 504: "504 Gateway Time-out"}
_OPEN_HOSTS = frozenset({names.CREDENTIAL_MANAGER, names.ADMIN})
"""Whose routes look at tokens themselves, or need none."""


class Application:
    """A WSGI application."""

    def __init__(
        self, *, credentials: Credentials, people: People, orchestrator: Orchestrator, admin: Admin,
        faults: Faults, journal: Journal,
    ) -> None:  # fmt: skip
        from werkzeug.routing import Map, Rule

        self._credentials = credentials
        self._faults = faults
        self._journal = journal
        routes = (*_credentials(credentials), *_people(people), *_orchestrator(orchestrator), *_admin(admin))
        rules = [
            Rule(path, host=host, methods=[method], endpoint=route) for host, method, path, route in routes
        ]
        self._routes = Map(rules, host_matching=True, strict_slashes=False)

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        from werkzeug.wrappers import Request as WsgiRequest

        came = WsgiRequest(environ)
        begun_s = time.monotonic()
        request = Request(
            method=came.method,
            host=came.host.partition(":")[0],
            path=came.path,
            query=came.args.to_dict(flat=False),
            body=came.get_data(),
            token=_bearer(came.headers.get("Authorization")),
        )
        answer = self._gateway(request)
        self._journal.request(
            host=request.host,
            method=request.method,
            path=request.path,
            query=dict(request.query),
            request_bytes=len(request.body),
            status=answer.status,
            error=answer.error,
            seconds=round(time.monotonic() - begun_s, 4),
        )
        return _response(answer, came.headers.get("Origin", "*"))(environ, start)

    def _gateway(self, request: Request) -> Answer:
        """What stands before the services: it may be slow, or break before or after the effect."""
        if request.host == names.ADMIN:
            return self._answer(request)
        slow = self._faults.for_request("slow", request.method, request.path)
        broken = self._faults.for_request("http", request.method, request.path)
        if slow is not None:
            time.sleep(slow.seconds)
        if broken is None:
            return self._answer(request)
        if broken.when == "after":
            self._answer(request)
        return Answer(broken.status, {}, _GATEWAY.get(broken.status, f"{broken.status} of the gateway"))

    def _answer(self, request: Request) -> Answer:
        from werkzeug.exceptions import HTTPException

        adapter = self._routes.bind(request.host, url_scheme="https")
        try:
            route, values = adapter.match(request.path, method=request.method)
            self._let_in(request)
            answer: Answer = route(request, **values)
        except RefusedError as error:
            return answers.refusal(error.status, str(error))
        except HTTPException as error:
            said = f"{request.method} {request.path}: {error.name}"
            return answers.refusal(error.code or HTTPStatus.NOT_FOUND, said)
        except Exception as error:  # noqa: BLE001 - our own fault has to be seen by the client, too
            self._journal.event("internal error", path=request.path, error=repr(error))
            return answers.refusal(500, f"the sandbox failed: {error!r}")
        return answer

    def _let_in(self, request: Request) -> None:
        if request.host in _OPEN_HOSTS:
            return
        if self._faults.for_request("token-expired", request.method, request.path) and request.token:
            self._credentials.revoke(request.token)
        self._credentials.check(request.token)


def _credentials(service: Credentials) -> Iterable[tuple[str, str, str, Route]]:
    host = names.CREDENTIAL_MANAGER
    yield host, "POST", "/credmgr/tokens/refresh", service.refresh
    yield host, "POST", "/credmgr/tokens/validate", service.validate


def _people(service: People) -> Iterable[tuple[str, str, str, Route]]:
    host = names.CORE_API
    yield host, "GET", "/whoami", service.whoami
    yield host, "GET", "/people", service.people
    yield host, "GET", "/people/<uuid>", service.person
    yield host, "GET", "/projects", service.projects
    yield host, "GET", "/projects/<uuid>", service.project
    yield host, "POST", "/sshkeys", service.new_key


def _orchestrator(service: Orchestrator) -> Iterable[tuple[str, str, str, Route]]:
    host = names.ORCHESTRATOR
    yield host, "GET", "/resources/summary", service.resources
    yield host, "POST", "/slices/creates", service.create
    yield host, "GET", "/slices", service.slices
    yield host, "GET", "/slices/<slice_id>", service.slice
    yield host, "PUT", "/slices/modify/<slice_id>", service.modify
    yield host, "POST", "/slices/modify/<slice_id>/accept", service.accept
    yield host, "POST", "/slices/renew/<slice_id>", service.renew
    yield host, "DELETE", "/slices/delete", service.delete_all
    yield host, "DELETE", "/slices/delete/<slice_id>", service.delete
    yield host, "GET", "/slivers", service.slivers
    yield host, "GET", "/slivers/<sliver_id>", service.sliver
    yield host, "POST", "/poas/create/<sliver_id>", service.act
    yield host, "GET", "/poas/<poa_id>", service.action


def _admin(service: Admin) -> Iterable[tuple[str, str, str, Route]]:
    host = names.ADMIN
    yield host, "POST", "/faults", service.order
    yield host, "GET", "/faults", service.waiting
    yield host, "DELETE", "/faults", service.clear
    yield host, "GET", "/requests", service.requests
    yield host, "GET", "/events", service.events


def _bearer(header: str | None) -> str | None:
    kind, _, token = (header or "").partition(" ")
    return token if kind == "Bearer" and token else None


def _response(answer: Answer, origin: str) -> Response:
    from werkzeug.wrappers import Response

    headers = {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Expose-Headers": "Content-Length, Content-Range, X-Error",
    }
    if answer.error is not None:
        headers["X-Error"] = " ".join(answer.error.split())
    body = json.dumps(answer.body, indent=4, sort_keys=True, default=str)
    return Response(body, answer.status, headers, content_type="application/json")
