"""fablib's own clients, behind our wire, against a server on loopback that answers what a test wants."""

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

pytest.importorskip("fabrictestbed", reason="needs the extra fabric")

from fabbbr.backends.fabric import fablib
from fabbbr.backends.fabric.answers import LostError, RefusedError, written
from fabbbr.backends.fabric.fablib import FablibWire, utc_now
from fabbbr.errors import EnvironmentUnfitError

pytestmark = pytest.mark.filterwarnings("default")
SLICE = {
    "slice_id": "s-1",
    "name": "mine",
    "state": "StableOK",
    "lease_end_time": "2026-05-04 12:00:00 +0000",
}


def refusal(said):
    return json.dumps({"errors": [{"details": said, "message": "Error"}], "type": "error"})


class Server(ThreadingHTTPServer):
    """``answers`` is path → answers to come, each status and text; the last one stays."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = {}
        self.counts = Counter()
        self.bodies = []
        self.slow_s = 0.0

    def answer(self, method, path):
        self.counts[f"{method} {path}"] += 1
        waiting = self.answers.get(path, [(200, '{"data": []}')])
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self):
        self.server.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        status, text = self.server.answer(self.command, self.path.partition("?")[0])
        time.sleep(self.server.slow_s)
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *words):
        pass


@contextmanager
def serving():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path / "tokens.json")


class Tokens:
    def __init__(self, path):
        self.path = path
        self.write(timedelta(hours=4))

    def write(self, left, **more):
        held = {"id_token": "a.b.c", "expires_at": written(utc_now() + left), **more}
        self.path.write_text(json.dumps(held))


@pytest.fixture
def opened(server, tokens, tmp_path, monkeypatch):
    """A way to open wires to the server, through a stand-in for fablib's settings."""
    from fabrictestbed.fabric_manager_v2 import FabricManagerV2

    url = f"http://127.0.0.1:{server.server_port}"
    where = SimpleNamespace(
        get_project_id=lambda: "p",
        get_bastion_host=lambda: "bastion",
        get_bastion_username=lambda: "alice",
        get_bastion_key_location=lambda: str(tmp_path / "b"),
        get_default_slice_private_key_file=lambda: str(tmp_path / "s"),
        get_default_slice_public_key_file=lambda: str(tmp_path / "s.pub"),
        get_token_location=lambda: str(tokens.path),
        get_manager=lambda: FabricManagerV2(
            credmgr_host=url,
            orchestrator_host=url,
            core_api_host=url,
            token_location=str(tokens.path),
            project_id="p",
            auto_refresh=False,
        ),
    )
    monkeypatch.setattr(fablib, "_configured", lambda folder: where)
    made = []

    def open_one():
        made.append(FablibWire(tmp_path / "state", now=utc_now, pause=lambda seconds: None))
        return made[-1]

    yield open_one
    for wire in made:
        wire.close()


@pytest.fixture
def wire(opened):
    return opened()


CREATES = "/slices/creates"
ORDERS = [
    ("POST", CREATES, lambda wire: wire.create("mine", "<graph/>", key="ssh-rsa A", until=utc_now())),
    ("POST", "/slices/renew/s-1", lambda wire: wire.renew("s-1", utc_now())),
    ("DELETE", "/slices/delete/s-1", lambda wire: wire.delete("s-1")),
]


@pytest.mark.parametrize(("method", "path", "order"), ORDERS, ids=("create", "renew", "delete"))
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_an_order_goes_out_once_and_a_gateways_error_leaves_its_effect_open(
    server, wire, method, path, order, status
):
    server.answers[path] = [(status, "<html>Bad Gateway</html>")]
    with pytest.raises(LostError, match=str(status)):
        order(wire)
    assert server.counts[f"{method} {path}"] == 1


@pytest.mark.parametrize(("method", "path", "order"), ORDERS, ids=("create", "renew", "delete"))
def test_a_refusal_goes_out_once_too_and_brings_fabrics_words(server, wire, method, path, order):
    server.answers[path] = [(500, refusal("not yet stable, try again later"))]
    with pytest.raises(RefusedError) as caught:
        order(wire)
    assert (caught.value.status, caught.value.said) == (500, "not yet stable, try again later")
    assert server.counts[f"{method} {path}"] == 1


def test_a_question_is_asked_again(server, wire):
    good = (200, json.dumps({"data": [SLICE]}))
    server.answers["/slices/s-1"] = [(502, "gateway"), (500, refusal("busy")), good]
    assert wire.slice("s-1").state == "StableOK"
    assert server.counts["GET /slices/s-1"] == 3


def test_a_question_is_not_asked_for_ever(server, wire):
    server.answers["/slices/s-1"] = [(502, "gateway")]
    with pytest.raises(LostError):
        wire.slice("s-1")
    assert server.counts["GET /slices/s-1"] == 3


def test_what_is_not_there_is_asked_for_once(server, wire):
    server.answers["/slices/s-1"] = [(404, refusal("User# has no Slices"))]
    with pytest.raises(RefusedError, match="404"):
        wire.slice("s-1")
    assert server.counts["GET /slices/s-1"] == 1


def test_an_empty_answer_to_a_question_for_one_slice_means_that_there_is_none(server, wire):
    with pytest.raises(RefusedError, match="404"):
        wire.slice("s-1")


def test_an_order_to_delete_nothing_in_particular_never_goes_out(server, wire):
    with pytest.raises(RefusedError):
        wire.delete("")
    assert not any(key.startswith("DELETE") for key in server.counts)


def test_a_deadline_holds_for_a_server_that_only_listens(server, wire, monkeypatch):
    wire.settings()
    monkeypatch.setattr(fablib, "WRITE_S", 0.2)
    server.slow_s = 3.0
    start = time.monotonic()
    with pytest.raises(LostError):
        wire.delete("s-1")
    assert time.monotonic() - start < server.slow_s


def test_a_server_that_is_not_there_is_named_by_the_reason(server, wire):
    wire.settings()
    server.shutdown()
    server.server_close()
    with pytest.raises(LostError, match=r"refused|Connection"):
        wire.delete("s-1")


def test_slices_are_found_by_the_exact_name_on_all_pages(server, wire, monkeypatch):
    monkeypatch.setattr(fablib, "_PAGE", 2)
    pages = [["other", "mine2"], ["mine", "min"], ["mine"]]
    server.answers["/slices"] = [
        (200, json.dumps({"data": [{**SLICE, "slice_id": name, "name": name} for name in page]}))
        for page in pages
    ]
    assert [each.name for each in wire.named("mine")] == ["mine", "mine"]


def test_the_summary_fails_aloud(server, wire):
    """The manager of fablib has a method for it that turns every error into nothing at all."""
    server.answers["/resources/summary"] = [(403, refusal("Policy Violation"))]
    with pytest.raises(RefusedError, match="Policy Violation"):
        wire.summary()


# The token.


def test_an_expired_token_is_said_before_anything_is_asked(server, wire, tokens):
    tokens.write(timedelta(seconds=-1))
    with pytest.raises(EnvironmentUnfitError, match=r"tokens\.json expired at .*fabric-cli configure setup"):
        wire.named("mine")
    assert not server.counts["GET /slices"]
    tokens.write(timedelta(hours=1))
    assert wire.named("mine") == ()


def test_a_token_that_fabric_does_not_take_is_said_to_be_so(server, wire):
    server.answers["/slices"] = [(401, refusal("token expired"))]
    with pytest.raises(EnvironmentUnfitError, match="is not accepted by FABRIC"):
        wire.named("mine")
    assert server.counts["GET /slices"] == 1


def test_a_token_is_renewed_when_it_is_near_its_end_and_by_one_of_many(server, opened, tokens):
    tokens.write(timedelta(minutes=5), refresh_token="R1")  # noqa: S106
    fresh = {
        "id_token": "new.b.c",
        "refresh_token": "R2",
        "expires_at": written(utc_now() + timedelta(hours=4)),
    }
    server.answers["/credmgr/tokens/refresh"] = [(200, json.dumps({"data": [fresh]}))]
    wires = [opened() for _ in range(4)]
    threads = [threading.Thread(target=wire.named, args=("mine",)) for wire in wires]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.counts["POST /credmgr/tokens/refresh"] == 1
    assert server.counts["GET /slices"] == 4
    held = json.loads(tokens.path.read_text())
    assert (held["id_token"], held["refresh_token"]) == ("new.b.c", "R2")
    assert tokens.path.stat().st_mode & 0o777 == 0o600


def test_a_fresh_token_is_left_alone(server, wire, tokens):
    tokens.write(timedelta(hours=4), refresh_token="R1")  # noqa: S106
    wire.named("mine")
    assert not server.counts["POST /credmgr/tokens/refresh"]


@pytest.mark.parametrize("left", [timedelta(minutes=5), timedelta(seconds=-1)])
def test_without_a_new_token_the_old_one_serves_as_long_as_it_lives(server, wire, tokens, left):
    tokens.write(left, refresh_token="R1")  # noqa: S106
    server.answers["/credmgr/tokens/refresh"] = [(500, refusal("refresh token was used"))]
    if left > timedelta(0):
        assert wire.named("mine") == ()
    else:
        with pytest.raises(EnvironmentUnfitError, match="expired"):
            wire.named("mine")
    assert server.counts["POST /credmgr/tokens/refresh"] == 1


def test_a_lease_is_asked_for_by_its_instant(server, wire):
    seen = []
    server.answer = lambda method, path: seen.append(path) or (200, '{"data": [{"slice_id": "s-9"}]}')
    until = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
    assert wire.create("mine", "<graph/>", key="ssh-rsa A", until=until) == "s-9"
    body = json.loads(server.bodies[-1])
    assert body == {"graph_model": "<graph/>", "ssh_keys": ["ssh-rsa A"]}


def test_nothing_is_written_to_the_terminal(server, wire, capfd):
    server.answers["/slices/delete/s-1"] = [(502, "gateway")]
    for ask in (lambda: wire.delete("s-1"), wire.account):
        with pytest.raises((LostError, RefusedError)):
            ask()
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")
