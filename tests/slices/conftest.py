"""Slices that are made for real: their names, and where they are kept."""

import subprocess
import uuid

import pytest
from name_spaces import spaces

from fabbbr.backends import namespaces
from fabbbr.slice import measure


@pytest.fixture
def name():
    """Of a slice that is gone afterwards, whatever the test did."""
    name = f"t{uuid.uuid4().hex[:8]}"
    yield name
    for machine in spaces(name):
        subprocess.run(("ip", "netns", "delete", f"fabbbr-{name}+{machine}"), check=False)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(namespaces, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(measure, "RATE_S", 1)
    monkeypatch.setattr(measure, "PINGS", 3)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "kept"
