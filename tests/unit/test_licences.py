"""What is shipped lies beside the texts of its licences."""

import re
import subprocess
from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[2]
FILES = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("folder", [".", "guest-wheel"])
def test_the_licence_of_a_wheel_is_an_spdx_expression(folder):
    assert canonicalize_license_expression(project(folder)["license"])


def test_every_licence_file_of_the_wheel_is_there():
    for pattern in project(".")["license-files"]:
        assert list(ROOT.glob(pattern)), pattern


@pytest.mark.skipif(FILES.returncode != 0, reason="no git here")
def test_every_licence_that_a_file_names_has_its_text():
    texts = {path.stem for path in (ROOT / "LICENSES").glob("*.txt")}
    for name in FILES.stdout.split("\0")[:-1]:
        path = ROOT / name
        if path.suffix in (".c", ".h", ".py") and path.is_file():
            for said in re.findall(r"^\W*SPDX-License-Identifier: ([^*\n]+)", path.read_text(), re.MULTILINE):
                named = {each.strip() for each in said.split(" OR ")}
                assert {"GPL-2.0-only" if each == "GPL-2.0" else each for each in named} <= texts, name


def test_what_the_bundle_of_plotly_is_made_of_is_in_the_licence_of_the_wheel():
    text = (ROOT / "analysis/fabbbr_analysis/report/bundle/LICENCES.txt").read_text()
    heads = re.findall(r"^(?:@?[\w./-]+) [\d.]+\S*: ([A-Za-z0-9.-]+)$", text, re.MULTILINE)
    assert set(heads) <= set(re.findall(r"[A-Za-z][\w.-]+", project(".")["license"]))
    assert len(heads) > 10
