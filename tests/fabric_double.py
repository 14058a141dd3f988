"""What tests beside the double of FABRIC share: its door, where failures are ordered, and patience."""

import json
import os
import ssl
import time
import urllib.request
from datetime import timedelta

from fabbbr.backends.channel import ChannelError
from fabbbr.backends.fabric import FabricProvider
from fabbbr.backends.fabric.answers import written
from fabbbr.backends.fabric.fablib import utc_now
from fabbbr.backends.fabric.provider import Patience

DOOR = os.environ.get("FABBBR_SANDBOX")
"""Set inside the double."""
NEAR, FAR = "DALL", "SALT"
SOON = Patience(appear_s=3.0, stable_s=60.0, settle_s=20.0, look_s=0.5)


def _ask(method, path, body=None):
    request = urllib.request.Request(f"{DOOR}{path}", data=body, method=method)  # noqa: S310 - https
    context = ssl.create_default_context(cafile=os.environ["REQUESTS_CA_BUNDLE"])
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:  # noqa: S310
        return json.load(answer)


def fail(fault):
    """Order a failure, written as on the command line of the sandbox."""
    _ask("POST", "/faults", fault.encode())


def heal():
    """Take back what has not struck."""
    _ask("DELETE", "/faults")


def waiting():
    """Failures that have not struck."""
    return _ask("GET", "/faults")["faults"]


def requests():
    """All so far."""
    return _ask("GET", "/requests")["requests"]


def settled(provider, live, limit_s=60.0):
    end = time.monotonic() + limit_s
    while live.state in ("configuring", "closing") and time.monotonic() < end:
        time.sleep(0.3)
        live = provider.refresh(live)
    return live


def gone(provider, live):
    provider.delete(live)
    assert settled(provider, provider.refresh(live)).state == "gone"


def answers(channel, *argv, limit_s=60.0):
    """The first answer of a machine whose sshd may still be starting."""
    end = time.monotonic() + limit_s
    while True:
        try:
            return channel.run(argv, timeout_s=20)
        except ChannelError:  # noqa: PERF203
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def creates():
    return sum(each["method"] == "POST" and each["path"].endswith("/slices/creates") for each in requests())


def completes(provider, wish):
    """The same words again, without the failure."""
    heal()
    if there := provider.find(wish.name):
        gone(provider, there)
    live = settled(provider, provider.submit(wish))
    assert live.state == "ok", live.said
    gone(provider, live)


def configured(folder, **changes):
    """A provider whose settings differ from those of fablib's files."""
    made = FabricProvider(folder, patience=SOON)
    made._wire._settings = made._wire.settings().model_copy(update=changes)
    return made


def near_its_end(path):
    """Let the next use of a token renew it."""
    held = json.loads(path.read_text())
    path.write_text(json.dumps({**held, "expires_at": written(utc_now() + timedelta(minutes=1))}))
