"""What a command in a guest sees of this machine."""

import subprocess
import sys
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


def test_the_image_is_built_by_what_make_installs_first():
    """While pip fetches all the rest: with an import more `make demo` ends where nothing is there yet."""
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    (line,) = (line for line in makefile.splitlines() if "install --quiet pydantic" in line)
    first = {"pyyaml": "yaml"}
    there = {first.get(name, name) for name in line.split("--quiet ")[1].split()}
    later = {"yaml", "numpy", "pandas", "pyarrow", "scipy", "plotly", "matplotlib", "jinja2", "msgspec"}
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(later - there)!r}))\n"
        "from fabbbr import cli; import fabbbr.commands.guest"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
