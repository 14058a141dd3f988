"""Manifests of older formats in the shape of today's: the one place that remembers how they were.

Before format 3 a cell knew the timer of the kernel that shaped it, a bottleneck was eight fields of its link,
and the place was spread over the provenance.
"""

from __future__ import annotations

import json
from typing import Any

from fabbbr.testbed import REAL_TIME, VIRTUAL_TIME

_TODAY = 3
_OF_A_BOTTLENECK = ("rate", "buffer_bytes", "buffer_asked", "bdp_bytes", "aqm", "ecn", "both_directions")
_OF_A_KERNEL = {
    "release": "kernel_release",
    "config_sha256": "kernel_config_sha256",
    "sha256": "kernel_sha256",
}


def in_todays_shape(record: bytes, format_version: int) -> bytes:
    """The JSON of a manifest as today's records read it; raise ValueError when it is none."""
    if not 1 <= format_version < _TODAY:
        return record
    try:
        manifest = json.loads(record)
        if "cells" in manifest:
            manifest["cells"] = [_cell(cell) for cell in manifest["cells"]]
        if "provenance" in manifest:
            timer_hz = manifest["cell"]["timer_hz"]
            manifest["provenance"] = _provenance(manifest["provenance"], timer_hz)
            manifest["cell"] = _cell(manifest["cell"])
    except (AttributeError, KeyError, RecursionError, TypeError) as error:
        message = f"it is not of format {format_version}, as it says ({error!r})"
        raise ValueError(message) from None
    return json.dumps(manifest).encode()


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in cell.items() if key != "timer_hz"}
    return {**rest, "links": [_link(link) for link in cell["links"]]}


def _link(link: dict[str, Any]) -> dict[str, Any]:
    queue = {key: link[key] for key in _OF_A_BOTTLENECK if link.get(key) is not None}
    rest = {key: value for key, value in link.items() if key not in (*_OF_A_BOTTLENECK, "burst_bytes")}
    return {**rest, "bottleneck": queue if "rate" in queue else None}


def _provenance(told: dict[str, Any], timer_hz: int) -> dict[str, Any]:
    kernel = {"timer_hz": timer_hz, **{key: told.get(old) for key, old in _OF_A_KERNEL.items()}}
    gone = ("backend", "clock", "tools", *_OF_A_KERNEL.values())
    tolerances = VIRTUAL_TIME if told["clock"] == "virtual" else REAL_TIME
    return {
        **{key: value for key, value in told.items() if key not in gone},
        "testbed": {
            "backend": told["backend"],
            "clock": told["clock"],
            "tolerances": tolerances.model_dump(),
            "machines": {told["backend"]: {"kernel": kernel, "tools": told.get("tools", {})}},
        },
    }
