"""FABRIC through its own library: the only room that calls it.

What fablib leaves to chance is decided here. Every call ends by a deadline (it runs in a thread beside).
Nothing is sent twice by itself: the retries that fablib's clients make of each POST, PUT and DELETE are taken
away, and those of reading are ours. Its log goes to our folder, what it prints goes nowhere. Its way of
refreshing the token (at each start, against a file that several processes share) is replaced by one that
does so when needed, and one process at a time. Its own ssh is not used at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

from fabbbr.backends.fabric import graph
from fabbbr.backends.fabric.answers import (
    GraphSeen,
    LostError,
    RefusedError,
    Settings,
    SliceSeen,
    SliverSeen,
    slice_seen,
    sliver_seen,
    written,
)
from fabbbr.backends.fabric.credentials import EARLY, SETUP, Token, read_token, require_hosts, unusable
from fabbbr.backends.fabric.deadline import within
from fabbbr.backends.fabric.refusals import brief, details
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.files import write_atomically
from fabbbr.foreign import inline
from fabbbr.reserve.records import Reservation
from fabbbr.version import GET_FABRIC

READ_S = 45.0
"""For an answer to a question."""
WRITE_S = 150.0
"""For an order: the orchestrator plans a whole slice before it answers."""
_OPEN_S = 90.0
_PAUSE_S = 1.0
_PAGE = 200
_GATEWAY = (429, 502, 503, 504)
"""Statuses of what stands before FABRIC's servers."""
_LOGGERS = ("fabric", "fabric_cf")

_Answer = TypeVar("_Answer")


class FablibWire:
    """The real one. ``folder`` is ours: log, lock and what fablib writes besides."""

    def __init__(
        self,
        folder: Path,
        *,
        now: Callable[[], datetime],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = folder
        self._now = now
        self._pause = pause
        self._opened: tuple[Any, Any] | None = None
        self._settings: Settings | None = None

    def settings(self) -> Settings:
        """How fablib is configured; EnvironmentUnfitError when that is not enough."""
        if self._settings is None:
            fablib = self._fablib
            self._settings = Settings(
                project_id=fablib.get_project_id(),
                bastion_host=fablib.get_bastion_host(),
                bastion_user=fablib.get_bastion_username(),
                bastion_key=os.path.abspath(fablib.get_bastion_key_location()),  # noqa: PTH100 - strings
                slice_key=os.path.abspath(fablib.get_default_slice_private_key_file()),  # noqa: PTH100
                slice_public_key=os.path.abspath(fablib.get_default_slice_public_key_file()),  # noqa: PTH100
                token_file=os.path.abspath(fablib.get_token_location()),  # noqa: PTH100
            )
        return self._settings

    def summary(self) -> Mapping[str, Any]:
        """All sites and their resources. The manager's own method turns every error into None."""
        answer: Mapping[str, Any] = self._read(
            "the resources", lambda manager, token: manager.orch.resources_summary(token=token)
        )
        return answer

    def token(self) -> Mapping[str, Any]:
        """What the credential manager says of the user's token."""
        answer: Mapping[str, Any] = self._read(
            "the token", lambda manager, token: manager.tokens_validate(id_token=token)
        )
        return answer

    def account(self) -> Mapping[str, Any]:
        """The portal's record of the user."""
        answer: Mapping[str, Any] = self._read(
            "the account", lambda manager, token: manager.get_user_info(id_token=token)
        )
        return answer

    def users(self) -> Mapping[str, str]:
        """Image → the user to log in as."""
        fablib = self._fablib
        images: Mapping[str, Mapping[str, str]] = within(READ_S, "the images", fablib.get_os_images)
        return {name: image["default_user"] for name, image in images.items() if "default_user" in image}

    def make_keys(self) -> None:
        """Have FABRIC make the keys of a user who has none yet, as fablib does at its first use."""
        settings, fablib = self.settings(), self._fablib
        with _silent():
            if not os.path.exists(settings.slice_key):  # noqa: PTH110 - strings
                self._write("making the slice key", lambda _manager, _token: fablib.create_sliver_keys())
            if not os.path.exists(settings.bastion_key):  # noqa: PTH110
                self._write("making the bastion key", lambda _manager, _token: fablib.create_bastion_keys())

    def named(self, name: str) -> tuple[SliceSeen, ...]:
        """The user's slices of exactly that name that are not dead; the server does not compare."""
        found: list[SliceSeen] = []
        while True:
            page = self._page(name, len(found))
            found += map(slice_seen, page)
            if len(page) < _PAGE:
                return tuple(each for each in found if each.name == name and each.state != "Dead")

    def _page(self, name: str, offset: int) -> list[Mapping[str, Any]]:
        answer: list[Mapping[str, Any]] = self._read(
            "the slices",
            lambda manager, token: manager.list_slices(
                id_token=token, name=name, exclude_states=["Dead"], limit=_PAGE, offset=offset
            ),
        )
        return answer

    def slice(self, slice_id: str) -> SliceSeen:
        """A slice, without its graph."""
        return slice_seen(self._slice(slice_id, "NONE"))

    def full(self, slice_id: str) -> tuple[SliceSeen, GraphSeen]:
        """A slice with its graph."""
        answer = self._slice(slice_id, "GRAPHML")
        model = answer.get("model")
        return slice_seen(answer), graph.seen(model) if model else GraphSeen()

    def _slice(self, slice_id: str, form: str) -> Mapping[str, Any]:
        answer: list[Mapping[str, Any]] = self._read(
            f"slice {slice_id}",
            lambda manager, token: manager.list_slices(id_token=token, slice_id=slice_id, graph_format=form),
        )
        if not answer:
            raise RefusedError(404, f"slice {slice_id} not found")
        return answer[0]

    def slivers(self, slice_id: str) -> tuple[SliverSeen, ...]:
        """The parts of a slice."""
        answer = self._read(
            f"slivers of {slice_id}",
            lambda manager, token: manager.list_slivers(id_token=token, slice_id=slice_id),
        )
        return tuple(map(sliver_seen, answer))

    def composed(self, reservation: Reservation) -> str:
        """The graph of what is wished."""
        with _silent():
            return graph.composed(self._fablib, reservation)

    def create(self, name: str, graphml: str, *, key: str, until: datetime) -> str:
        """Ask for a slice, once; its id."""
        slivers = self._write(
            f"creating slice {name}",
            lambda manager, token: manager.create_slice(
                id_token=token,
                name=name,
                graph_model=graphml,
                ssh_keys=[key],
                lease_end_time=written(until),
            ),
        )
        if not slivers:
            message = f"creating slice {name}: an empty answer"
            raise LostError(message)
        return str(slivers[0]["slice_id"])

    def renew(self, slice_id: str, until: datetime) -> None:
        """Ask for another end of its lease. fablib's own slices round it to whole days."""
        self._write(
            f"renewing slice {slice_id}",
            lambda manager, token: manager.renew_slice(
                id_token=token, slice_id=slice_id, lease_end_time=written(until)
            ),
        )

    def delete(self, slice_id: str) -> None:
        """Ask for its end. Without an id fablib would ask for the end of all slices of the user."""
        if not slice_id:
            raise RefusedError(400, "a slice without an id")
        self._write(
            f"deleting slice {slice_id}",
            lambda manager, token: manager.delete_slice(id_token=token, slice_id=slice_id),
        )

    def close(self) -> None:
        """Give back what the library holds; its own close would end the log of the user's too."""
        if self._opened is None:
            return
        fablib, manager = self._opened
        self._opened = None
        if threads := getattr(fablib, "ssh_thread_pool_executor", None):
            threads.shutdown(wait=False)
        for client in (manager.orch, manager.credmgr):
            client.session.close()

    # The library, and calls of it.

    @property
    def _fablib(self) -> Any:  # noqa: ANN401 - it has no types
        return self._open()[0]

    def _open(self) -> tuple[Any, Any]:
        if self._opened is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fablib = _configured(self._folder)
            try:
                manager = within(_OPEN_S, "FABRIC", fablib.get_manager)
            except Exception as error:
                raise LostError(brief(str(error) or repr(error))) from error
            for client in (manager.orch, manager.credmgr):
                _without_retries(client)
            self._opened = (fablib, manager)
        return self._opened

    def _read(self, what: str, call: Callable[[Any, str], Any]) -> Any:  # noqa: ANN401 - JSON
        """Ask until there is an answer, a few times."""
        for pause_s in (_PAUSE_S, 2 * _PAUSE_S):
            try:
                return self._once(what, call, READ_S)
            except (LostError, RefusedError) as error:
                if isinstance(error, RefusedError) and error.status < 500:
                    raise
            self._pause(pause_s)
        return self._once(what, call, READ_S)

    def _write(self, what: str, call: Callable[[Any, str], _Answer]) -> _Answer:
        """Ask once."""
        return self._once(what, call, WRITE_S)

    def _once(self, what: str, call: Callable[[Any, str], _Answer], limit_s: float) -> _Answer:
        token = self._token()
        _, manager = self._open()
        manager.orch.timeout = manager.credmgr.timeout = limit_s
        with _quiet_root():
            try:
                return within(limit_s, what, lambda: call(manager, token.id_token))
            except Exception as error:
                raise self._understood(what, error, token) from error

    def _understood(self, what: str, error: Exception, token: Token) -> Exception:
        """What an error of the library means."""
        if isinstance(error, (LostError, RefusedError, EnvironmentUnfitError)):
            return error
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            return LostError(f"{what}: {brief(_root(error))}")
        if status == 401:
            return unusable(Path(self.settings().token_file), token.ends, self._now())
        said = details(str(getattr(error, "body_preview", "")))
        if status in _GATEWAY or said is None:
            return LostError(f"{what}: HTTP status {status}")
        return RefusedError(status, said)

    # The token.

    def _token(self) -> Token:
        """One that is good for now, renewed where that is possible."""
        path = Path(self.settings().token_file)
        token = read_token(path)
        if not token.ends_within(EARLY, self._now()):
            return token
        if token.refresh_token:
            with _alone(self._folder / "token.lock"):
                token = read_token(path)
                if token.ends_within(EARLY, self._now()):
                    token = self._renewed(path, token)
        if token.ends_within(timedelta(0), self._now()):
            raise unusable(path, token.ends, self._now())
        return token

    def _renewed(self, path: Path, token: Token) -> Token:
        """A new token in the file; the old one when FABRIC gives none."""
        _, manager = self._open()
        try:
            answer = within(
                READ_S,
                "a new token",
                lambda: manager.credmgr.refresh(
                    refresh_token=token.refresh_token, scope="all", project_id=self.settings().project_id
                ),
            )
        except Exception:
            logging.getLogger("fabric.fabbbr").warning("no new token", exc_info=True)
            return token
        held = {name: value for name, value in answer[0].items() if value is not None}
        write_atomically(path.resolve(), json.dumps(held, indent=2) + "\n", mode=0o600)
        self.close()  # the manager remembers the old one
        return read_token(path)


def _configured(folder: Path) -> Any:  # noqa: ANN401
    """The manager of fablib, that has not spoken to anybody yet; EnvironmentUnfitError when it cannot be."""
    if not os.environ.get("HOME"):
        message = "fablib keeps its settings in your home folder: set HOME"
        raise EnvironmentUnfitError(message)
    with _silent():
        try:
            from fabrictestbed_extensions.fablib.config.config import ConfigException
            from fabrictestbed_extensions.fablib.fablib import FablibManager
        except ImportError as error:
            message = f"FABRIC's library is not here ({error}): {GET_FABRIC}"
            if sys.version_info < (3, 11):
                message += ", with Python 3.11 or later"
            raise EnvironmentUnfitError(message) from error
        except OSError as error:
            message = f"fablib cannot write its cache: {error}; make ~/.fabric yours, or set HOME"
            raise EnvironmentUnfitError(message) from error
        try:
            fablib = FablibManager(
                log_file=str(folder / "fablib.log"),
                data_dir=str(folder),
                auto_token_refresh=False,
                validate_config=False,
            )
        except ConfigException as error:
            message = f"FABRIC is not configured: {inline(' '.join(str(error).split()))}; {SETUP}"
            raise EnvironmentUnfitError(message) from error
    _log_to(folder / "fablib.log")
    if not fablib.get_bastion_username():
        message = f"FABRIC is not configured: FABRIC_BASTION_USERNAME is empty; {SETUP}"
        raise EnvironmentUnfitError(message)
    require_hosts(
        {
            "FABRIC_CREDMGR_HOST": fablib.get_credmgr_host(),
            "FABRIC_ORCHESTRATOR_HOST": fablib.get_orchestrator_host(),
            "FABRIC_CORE_API_HOST": fablib.get_core_api_host(),
            "FABRIC_BASTION_HOST": fablib.get_bastion_host(),
        }
    )
    return fablib


def _without_retries(client: Any) -> None:  # noqa: ANN401
    """Send each request of a client of fablib's once."""
    from requests.adapters import HTTPAdapter

    for scheme in ("https://", "http://"):
        client.session.mount(scheme, HTTPAdapter(max_retries=0))


def _log_to(path: Path) -> None:
    """Warnings of fablib's clients go to its log and not to the user's terminal."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            handler = logging.FileHandler(path, delay=True)
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
            logger.addHandler(handler)
            logger.propagate = False


def _root(error: BaseException) -> str:
    """The words of the error under all others, which the clients of fablib wrap."""
    while (under := error.__cause__ or error.__context__) is not None:
        error = under
    return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Without what fablib prints; short, for it holds for the whole process."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


@contextlib.contextmanager
def _quiet_root() -> Iterator[None]:
    """Keep fablib's ``logging.debug`` from giving the root logger a handler that writes to the terminal."""
    root, nothing = logging.getLogger(), logging.NullHandler()
    root.addHandler(nothing)
    try:
        yield
    finally:
        root.removeHandler(nothing)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold ``lock`` for the block, after whoever holds it now."""
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def utc_now() -> datetime:
    """The time, for those who are given no other."""
    return datetime.now(timezone.utc)
