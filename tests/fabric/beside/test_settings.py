"""A configuration that will not do is one readable line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("FABRIC_PROJECT_ID", None, "run: fabric-cli configure setup"),
        ("FABRIC_BASTION_USERNAME", None, "run: fabric-cli configure setup"),
        ("FABRIC_BASTION_USERNAME", "", "FABRIC_BASTION_USERNAME is empty"),
        (
            "FABRIC_ORCHESTRATOR_HOST",
            "https://orchestrator.fabric-testbed.net",
            "give the bare name of the host",
        ),
        ("FABRIC_ORCHESTRATOR_HOST", "nowhere.fabric-testbed.net", "nowhere.fabric-testbed.net"),
        ("FABRIC_TOKEN_LOCATION", "/nowhere/tokens.json", "/nowhere/tokens.json"),
    ],
)
def test_settings_that_will_not_do(tmp_path, setting, value, said):
    """In a process and a home of its own, as users have: fablib looks for HOME when it is imported."""
    rc = tmp_path / "work/fabric_config/fabric_rc"
    rc.parent.mkdir(parents=True)
    mine = Path(os.environ["HOME"], "work/fabric_config/fabric_rc").read_text().splitlines()
    lines = [each for each in mine if f" {setting}=" not in each]
    if value is not None:
        lines.append(f"export {setting}={value}")
    rc.write_text("\n".join([*lines, ""]))
    environment = {key: text for key, text in os.environ.items() if key != setting}
    program = (
        "from fabbbr.backends.fabric import FabricProvider\n"
        "from fabbbr.errors import FabbbrError\n"
        "try: FabricProvider().offer()\n"
        "except FabbbrError as error: print(error.exit_status, error)\n"
    )
    done = subprocess.run(
        (sys.executable, "-c", program),
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    (words,) = done.stdout.splitlines()
    assert words[:2] in ("5 ", "6 ")
    assert said in words
