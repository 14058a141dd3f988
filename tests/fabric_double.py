"""The door of the double of FABRIC beside which a test runs: order failures, read what was asked."""

import json
import os
import ssl
import urllib.request

DOOR = os.environ.get("FABBBR_SANDBOX")
"""Set inside the double."""


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
