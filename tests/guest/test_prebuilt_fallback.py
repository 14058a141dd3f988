"""A machine without a compiler, or without kernel sources: the distribution's guest kernel, in real time.

Debian 12's own package, 6.1, cannot run on a CPU with AMX, and not every machine that runs these tests has a
package at all. Where none can run, our own guest kernel stands in for it, laid out as the package is: without
the options of time travel it is a User Mode Linux like any other, and its clock is real. What it cannot show
is modules being loaded, for it has none.
"""

import re
import subprocess
from pathlib import Path

import pytest
from guest.cells import experiment, fabbbr

from fabbbr.backends.guest.kernel.prebuilt import prebuilt_kernel
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.files import sha256_of
from fabbbr.store import RunFolder
from fabbbr_analysis.runset import RunSet

pytestmark = pytest.mark.guest

SHORT = experiment(
    "short",
    path="rate: 5 Mbit/s, rtt: 40 ms, buffer: 50 packets",
    flows="{cca: cubic, duration: 2 s}, {cca: bbr1, size: 200 kB}",
)
COMPILER = re.compile(r"(.*-)?(gcc|cc|c\+\+|g\+\+|clang|tcc)(-[\d.]+)?")
REMEDY = "apt-get install user-mode-linux kmod"
DECIDED_BY_A_REAL_CLOCK = {"RTT h1–h2", "rate", "buffer"}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A PATH of this machine's tools without its compilers, nor a guest kernel."""
    folder = tmp_path_factory.mktemp("bare") / "bin"
    folder.mkdir()
    for place in ("/usr/bin", "/usr/sbin"):
        for tool in Path(place).iterdir():
            kept = COMPILER.fullmatch(tool.name) is None and tool.name != "linux.uml"
            if kept and not (folder / tool.name).exists():
                (folder / tool.name).symlink_to(tool)
    return folder


@pytest.fixture(scope="module")
def package(kernel, tmp_path_factory):
    """The folder with ``linux.uml``: the distribution's where it can run, else our kernel in its place."""
    try:
        installed = prebuilt_kernel()
    except EnvironmentUnfitError:
        installed = None
    if installed is not None:
        return installed.binary.parent
    root = tmp_path_factory.mktemp("package")
    (root / "bin").mkdir()
    (root / "bin" / "linux.uml").symlink_to(kernel.binary)
    (root / "lib/uml/modules" / kernel.release).mkdir(parents=True)
    return root / "bin"


def short_file(folder):
    file = folder / "short.yaml"
    file.write_text(SHORT, encoding="utf-8")
    return file


def test_without_a_compiler_the_kernel_is_not_built_and_the_prebuilt_one_is_offered(bare, tmp_path):
    done = fabbbr("guest", "build", PATH=str(bare), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 5
    assert "apt-get install build-essential" in done.stderr
    assert REMEDY in done.stderr
    assert "--clock real" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_kernel_sources_the_prebuilt_kernel_is_offered(tmp_path):
    nothing = tmp_path / "apt.conf"
    nothing.write_text(
        'Dir::Etc::SourceList "/dev/null"; Dir::Etc::SourceParts "/dev/null";\n', encoding="ascii"
    )
    done = fabbbr("guest", "build", APT_CONFIG=str(nothing), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 5
    assert REMEDY in done.stderr
    assert "--clock real" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_a_run_without_any_kernel_names_both_ways_to_get_one(bare, tmp_path, clock):
    out = tmp_path / "run"
    done = fabbbr(
        "run",
        short_file(tmp_path),
        "--clock",
        clock,
        "--out",
        out,
        PATH=str(bare),
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert done.returncode == 5
    assert "fabbbr guest build" in done.stderr
    assert REMEDY in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


@pytest.fixture(scope="module")
def fallback(bare, package, tmp_path_factory):
    """The folder of a whole run, with its report, on a machine that has no compiler and no kernel of ours."""
    work = tmp_path_factory.mktemp("fallback")
    done = fabbbr(
        "run", short_file(work), "--clock", "real", "--jobs", "1", "--out", work / "run",
        PATH=f"{package}:{bare}", XDG_CACHE_HOME=str(work / "cache"),
    )  # fmt: skip
    # A busy machine may miss the tolerances of a real clock: then the cell says so, and is not certified.
    assert done.returncode in (0, 10), done.stderr
    assert "Traceback" not in done.stderr
    return work / "run"


def test_the_manifest_names_the_prebuilt_kernel_and_its_real_clock(fallback, package):
    (stored,) = RunFolder.open(fallback).cells()
    assert stored.damage() == []
    manifest, kernel = stored.manifest, package / "linux.uml"
    told = subprocess.run((kernel, "--version"), capture_output=True, text=True, check=True).stdout.strip()
    assert manifest.provenance.testbed.clock == "real"
    (machine,) = manifest.provenance.testbed.machines.values()
    assert (machine.kernel.release, machine.kernel.sha256) == (told, sha256_of(kernel))
    assert machine.kernel.config_sha256 is None
    assert manifest.provenance.options["iperf3_wakeups"] is None
    assert machine.kernel.timer_hz == 100, "the tick of Debian's package, which bursts must allow for"
    # Wall seconds can hardly be fewer than those that a real clock counted.
    assert manifest.wall_s >= 0.95 * manifest.virtual_s > 2
    failed = {check.name for check in manifest.certificate.checks if not check.passed}
    assert failed <= DECIDED_BY_A_REAL_CLOCK


def test_every_flow_runs_in_the_prebuilt_kernel(fallback):
    flows = RunSet.open(fallback).flows
    assert flows["outcome"].tolist() == ["completed", "completed"]
    assert flows["goodput_bps"].min() > 0
    assert flows["received_bytes"].tolist()[1] == 200_000
    # The handshake and the way there, whatever the clock.
    assert flows["completion_s"].tolist()[1] > 0.060


def test_tables_and_report_are_marked_as_real_time(fallback):
    tables = RunSet.open(fallback)
    assert tables.runs["clock"].tolist() == tables.cells["clock"].tolist() == ["real"]
    assert "REAL TIME" in (fallback / "report.md").read_text(encoding="utf-8")
    page = (fallback / "report.html").read_text(encoding="utf-8")
    assert re.search(r'<span class="badge[^"]*">real time</span>', page)
    assert "REAL TIME" in page
