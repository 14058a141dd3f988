"""The wheel in an empty environment and an empty folder, as on a JupyterHub: what is bundled is found."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from fabbbr.backends.guest.image.found import found_image

pytestmark = pytest.mark.wheel

CHECKOUT = Path(__file__).parents[2]
EXECUTE = CHECKOUT / "tests" / "notebooks" / "execute.py"
LONGEST_S = 1800
LIFE = """\
set -eu
fabbbr slice create study --slice two_site --sites DALL,SALT --yes {prepare}
fabbbr slice run study cardwell_f10 --quick --repeat 1 --only cca=bbr1,loss=1% --set path.rtt='26 ms' \
    --set path.rate='20 Mbit/s' --set flows.0.duration='3 s' --out run --json >run.json
fabbbr slice teardown study --yes
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Built as for a release, of the files of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    built = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(CHECKOUT))
    subprocess.run(built, check=True)
    (made,) = folder.glob("fabbbr-*.whl")
    return made


class Installed:
    """An environment that has the wheel and what it asks for, and an empty folder to stand in."""

    def __init__(self, wheel, folder, *more, extras=""):
        self.folder = folder / "empty"
        self.folder.mkdir()
        self.bin = folder / "venv" / "bin"
        venv.create(folder / "venv", with_pip=True)
        pip = (str(self.bin / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run((*pip, f"{wheel}{extras}", *more), check=True, timeout=LONGEST_S)
        kept = {name: os.environ[name] for name in ("LANG", "TERM", "XDG_CACHE_HOME") if name in os.environ}
        self.environment = {
            **kept,
            "XDG_CACHE_HOME": os.environ.get(
                "XDG_CACHE_HOME", str(Path.home() / ".cache")
            ),  # the guest image
            "XDG_STATE_HOME": str(folder / "state"),
            "HOME": str(folder),
            "PATH": os.pathsep.join((str(self.bin), "/usr/sbin", "/usr/bin", "/sbin", "/bin")),
        }

    def run(self, *words):
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, timeout=LONGEST_S,
        )  # fmt: skip

    def python(self, program):
        done = self.run("python", "-c", program)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def plain(wheel, tmp_path_factory):
    return Installed(wheel, tmp_path_factory.mktemp("plain"), "nbclient", "ipykernel")


@pytest.fixture(scope="module")
def fabric(wheel, tmp_path_factory):
    return Installed(wheel, tmp_path_factory.mktemp("fabric"), extras="[fabric,ansible]")


def test_nothing_of_the_checkout_is_used(plain):
    where = plain.python("import fabbbr, fabbbr_analysis; print(fabbbr.__file__, fabbbr_analysis.__file__)")
    assert str(CHECKOUT) not in where
    assert all(one.startswith(str(plain.bin.parent)) for one in where.split())


def test_experiments_slices_and_playbooks_are_found(plain):
    listed = plain.run("fabbbr", "experiments", "list", "--json")
    names = {one["name"] for one in json.loads(listed.stdout)}
    assert names == {path.stem for path in (CHECKOUT / "experiments").glob("*.yaml")}
    assert plain.run("fabbbr", "plan", "knit6_e1", "--quick").returncode == 0
    found = plain.python(
        "from fabbbr import bundled; f = bundled.folder('playbooks');"
        "print(*(p.relative_to(f) for p in f.rglob('*') if p.is_file() and p.suffix != '.pyc'))"
    )
    there = [path for path in (CHECKOUT / "playbooks").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sorted(found.split()) == sorted(str(path.relative_to(CHECKOUT / "playbooks")) for path in there)


def test_a_slice_of_guests_is_made_of_a_bundled_definition(plain):
    if found_image() is None:
        pytest.skip("there is no guest image: fabbbr guest build")
    made = plain.run(
        "fabbbr", "slice", "create", "mine", "--slice", "two_site", "--backend", "guest", "--yes"
    )
    assert made.returncode == 0, made.stderr
    assert plain.run("fabbbr", "slice", "teardown", "mine", "--yes").returncode == 0


def test_without_the_extra_the_way_to_it_is_said(plain):
    refused = plain.run("fabbbr", "slice", "create", "mine", "--slice", "two_site", "--sites", "DALL,SALT")
    assert refused.returncode == 5
    assert "pip install 'fabbbr[fabric,ansible]'" in refused.stderr


def test_the_first_cells_of_the_quick_start_run(plain):
    notebook = json.loads((CHECKOUT / "notebooks" / "1_quick_start.ipynb").read_text())
    runs = next(
        place for place, cell in enumerate(notebook["cells"]) if "fb.run(" in "".join(cell["source"])
        and cell["cell_type"] == "code"
    )  # fmt: skip
    notebook["cells"] = notebook["cells"][:runs]
    (plain.folder / "first.ipynb").write_text(json.dumps(notebook))
    (plain.folder / "execute.py").write_text(EXECUTE.read_text())
    done = plain.run("python", "execute.py", "first.ipynb")
    assert done.returncode == 0, done.stderr
    assert "cardwell_f10" in done.stdout
    assert "12 cells" in done.stdout


def test_with_the_extra_fablib_is_asked_and_its_configuration_is_what_is_missing(fabric):
    refused = fabric.run("fabbbr", "slice", "create", "mine", "--slice", "two_site", "--sites", "DALL,SALT")
    assert refused.returncode == 5
    assert "fabric-cli configure setup" in refused.stderr


def test_the_playbooks_of_the_wheel_are_whole(fabric):
    played = fabric.run(
        "python", "-c",
        "import subprocess, sys; from fabbbr import bundled;"
        "play = bundled.folder('playbooks') / 'prepare.yml';"
        "sys.exit(subprocess.run(('ansible-playbook', '--syntax-check', '-i', 'h1,', play)).returncode)",
    )  # fmt: skip
    assert played.returncode == 0, played.stderr


def test_a_slice_lives_beside_the_double_with_nothing_but_the_wheel(fabric):
    if found_image() is None:
        pytest.skip("there is no guest image: fabbbr guest build")
    prepare = (
        "--prepare-with fabbbr_ccas=[bbr1] --prepare-with tcp_host_iperf3_minimum=\"''\" "
        "--prepare-with tcp_host_tolerate_missing=true --prepare-with tcp_host_persistent=false"
    )
    done = fabric.run("fabbbr", "sandbox", "--", "sh", "-c", LIFE.format(prepare=prepare))
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((fabric.folder / "run.json").read_text())
    assert len(told["certified"]) == 1
    assert (fabric.folder / "run" / "report.html").stat().st_size > 100_000
