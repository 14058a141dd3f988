"""What a command in a guest sees of this machine."""

from pathlib import Path

import pytest

from fabbbr import bundled
from fabbbr.backends.guest import command
from fabbbr.backends.guest.command import Outside


@pytest.mark.parametrize("home", ["/root", "/var"])
def test_a_checkout_is_seen_where_memory_would_hide_it(monkeypatch, home):
    """Slices, playbooks and the analysis lie beside the package there."""
    checkout = Path(home, "checkout")
    monkeypatch.setattr(bundled, "folder", lambda kind: checkout / kind)
    mounted = command._mounted(Outside(folder=Path("/home"), environment={}))
    assert checkout in mounted.values()
