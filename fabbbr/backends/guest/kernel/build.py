"""Builds the guest kernel once and keeps it in the user's cache, by version and by what went into it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter

from fabbbr.backends.allotted import processes_at_once
from fabbbr.backends.guest.clock import address_of_clock
from fabbbr.backends.guest.kernel.edits import INGREDIENTS, edit
from fabbbr.backends.guest.kernel.options import asked_of, refused, version_of
from fabbbr.backends.guest.kernel.source import newest_source, unpack
from fabbbr.errors import EnvironmentUnfitError, KernelBuildError
from fabbbr.files import sha256_of, write_atomically

_HERE = Path(__file__).parent
_INGREDIENTS = (_HERE / "guest.config", _HERE / "options.py", *INGREDIENTS)
_BUILD_TOOLS = {
    "gcc": "build-essential", "make": "build-essential", "flex": "flex", "bison": "bison",
    "bc": "bc", "xz": "xz-utils", "dpkg-deb": "dpkg",
}  # fmt: skip
# What is installed beside the compiler stands in a kernel's configuration, and that in the kernel.
MAKE = ("make", "ARCH=um", *(f"{tool}=fabbbr-has-none" for tool in ("RUSTC", "BINDGEN", "PAHOLE")))
_TARGET = ("FAB_BBR_AS=y", "linux")
_SET = {
    "KBUILD_BUILD_TIMESTAMP": "2000-01-01",
    "KBUILD_BUILD_USER": "fabbbr",
    "KBUILD_BUILD_HOST": "fabbbr",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}
_HANDED_ON = ("HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR")
_PROCESSORS = ("x86_64", "AMD64")
_EXPECTED_LINES = 712
"""Of make's output, for the progress bar only."""
SPACE_BYTES = 3_000_000_000
"""That a build needs while it goes on."""
_FETCH_S, _COMPILE_CPU_S = 40, 420
"""On a server's cores of 2022: fetching and unpacking, and the compiler's time on all cores together."""
_COMPILER_BYTES = 256 << 20
_NO_PATH_FOR_MAKE = re.compile(r"[\s:]")
_LARGE_TEMPORARY_FILES = Path("/var/tmp")  # noqa: S108
Progress = Callable[[str, float], None]
"""Told the stage and the share done, 0 to 1."""


class Keep(Protocol):
    """Puts aside what is needed of a kernel's source."""

    def __call__(self, source: Path, kernel: GuestKernel, progress: Progress, /, *, jobs: int) -> object: ...


@dataclass(frozen=True, kw_only=True)
class GuestKernel:
    """A kernel in the cache, and what it was made from."""

    folder: str
    release: str
    package: str
    package_version: str
    recipe: str
    config_sha256: str
    kernel_sha256: str
    seccomp: bool
    clock_address: int | None
    """Where it keeps its virtual clock."""
    build_s: float
    name: str | None = None
    """Of a kernel of the user's own; None for that of an image."""
    patches: tuple[str, ...] = ()
    """Name and sha256 of each that its source got."""
    compiler: str | None = None
    """Of a kernel of the user's own."""

    @property
    def binary(self) -> Path:
        """The kernel: an ordinary program."""
        return Path(self.folder) / "linux"

    @property
    def symbols(self) -> Path:
        """Addresses of its functions, for profiles and for reading an oops."""
        return Path(self.folder) / "System.map"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a kernel's source came from, as its description says."""

    package: str
    version: str
    patches: tuple[str, ...] = ()
    name: str | None = None


DESCRIPTION = "kernel.json"
_DESCRIBED = TypeAdapter(GuestKernel)


def kernels_folder() -> Path:
    """Where kernels are kept: ``fabbbr/kernels`` below the user's cache folder."""
    try:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        message = (
            f"user id {os.getuid()} has no home folder to keep the guest kernel in: "
            f"set HOME or XDG_CACHE_HOME"
        )
        raise EnvironmentUnfitError(message) from None
    return Path(root) / "fabbbr" / "kernels"


def recipe_hash() -> str:
    """Digest of all that decides the kernel beside its source: configuration, edits and build steps."""
    steps = (*MAKE, *_TARGET, *("=".join(one) for one in sorted(_SET.items())))
    digest = hashlib.sha256("\0".join(steps).encode())
    for file in _INGREDIENTS:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def cached_kernel() -> GuestKernel | None:
    """The newest kernel in the cache that today's recipe made, or None."""
    found = (read_kernel(file) for file in kernels_folder().glob(f"*/{DESCRIPTION}"))
    usable = (kernel for kernel in found if kernel is not None and kernel.recipe == recipe_hash())
    return max(usable, key=lambda kernel: version_key(kernel.release), default=None)


def read_kernel(file: Path) -> GuestKernel | None:
    """The kernel that a description is of; None where one is damaged, or not whole."""
    try:
        described = _DESCRIBED.validate_json(file.read_bytes())
    except (OSError, ValueError):
        return None
    # A cache that was copied names the place that it was copied from.
    kernel = replace(described, folder=str(file.parent))
    return kernel if kernel.binary.exists() else None


def build_kernel(progress: Progress, *, jobs: int | None = None, keep: Keep | None = None) -> GuestKernel:
    """Fetch, configure and compile; return the cached kernel. Raise KernelBuildError with the remedy.

    ``keep`` gets the built source before it is removed.
    """
    require_tools()
    root = kernels_folder()
    root.mkdir(parents=True, exist_ok=True)
    workshop = workshop_for(root)
    require_space(workshop)
    with only_one_builder(root, progress), folder_in(workshop) as work, folder_in(root) as shelf:
        existing = cached_kernel()
        if existing is not None:
            return existing
        at_once = jobs or compilers_at_once()
        kernel, source = _build_in(work, shelf, root, progress, at_once)
        if keep is not None:
            keep(source, kernel, progress, jobs=at_once)
        progress("done", 1.0)
        return kernel


def workshop_for(root: Path) -> Path:
    """Where to build: ``root``, unless its path is none for the kernel's Makefile, nor for a loader."""
    places = (root, Path(tempfile.gettempdir()), _LARGE_TEMPORARY_FILES)
    for place in places:
        if _NO_PATH_FOR_MAKE.search(str(place.resolve())) is None and os.access(place, os.W_OK | os.X_OK):
            return place
    message = (
        "a guest cannot be built where the path has blanks or colons, and none of "
        f"{', '.join(map(str, places))} will do; set TMPDIR to a folder without"
    )
    raise KernelBuildError(message)


@contextmanager
def folder_in(place: Path) -> Iterator[Path]:
    """A new folder, gone at the end; in the cache the next builder sweeps that of one who was killed."""
    folder = Path(tempfile.mkdtemp(prefix="build-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _build_in(work: Path, shelf: Path, root: Path, progress: Progress, jobs: int) -> tuple[GuestKernel, Path]:
    """The kernel, and the source that it was built from."""
    progress("looking for the newest kernel source", 0.0)
    package = newest_source(work)
    progress(f"fetching {package.name} {package.version}", 0.02)
    tree = unpack(package, work)
    origin = Origin(package=package.name, version=package.version)
    kernel = compile_kernel(tree, shelf / "kernel", origin, progress, jobs=jobs)
    final = root / f"{kernel.release}-{kernel.recipe}"
    return put(kernel, final), tree


def compile_kernel(tree: Path, staged: Path, origin: Origin, progress: Progress, *, jobs: int) -> GuestKernel:
    """Edit, configure and compile a source that may be changed; the kernel is put into the new ``staged``."""
    started, recipe = time.monotonic(), recipe_hash()
    progress("configuring", 0.10)
    edit(tree)
    configure(tree)
    _compile(tree, jobs, progress, _remembered() if origin.name is not None else ())
    release = (tree / "include/config/kernel.release").read_text(encoding="ascii").strip()
    staged.mkdir()
    step(("strip", "-o", str(staged / "linux"), "linux"), tree)
    shutil.copy(tree / ".config", staged / "config")
    shutil.copy(tree / "System.map", staged / "System.map")
    return GuestKernel(
        folder=str(staged),
        release=release,
        package=origin.package,
        package_version=origin.version,
        recipe=recipe,
        config_sha256=sha256_of(staged / "config"),
        kernel_sha256=sha256_of(staged / "linux"),
        seccomp=_has_seccomp(tree),
        clock_address=address_of_clock((staged / "System.map").read_text(encoding="ascii")),
        build_s=round(time.monotonic() - started, 1),
        name=origin.name,
        patches=origin.patches,
        compiler=compiler() if origin.name is not None else None,
    )


def put(kernel: GuestKernel, final: Path) -> GuestKernel:
    """Describe a compiled kernel and move it to ``final``, in place of what is there."""
    kept = replace(kernel, folder=str(final))
    write_atomically(Path(kernel.folder) / DESCRIPTION, json.dumps(asdict(kept), indent=1))
    shutil.rmtree(final, ignore_errors=True)
    Path(kernel.folder).rename(final)
    return kept


def compiler() -> str:
    """The first line of what the compiler says of itself."""
    said = subprocess.run(("gcc", "--version"), capture_output=True, text=True, check=False).stdout
    return said.partition("\n")[0]


def configure(tree: Path) -> None:
    """Write the tree's ``.config``; raise KernelBuildError with the options that the kernel does not take."""
    step((*MAKE, "tinyconfig"), tree)
    asked = asked_of(version_of(tree), (_HERE / "guest.config").read_text(encoding="ascii"))
    with (tree / ".config").open("a", encoding="ascii") as config:
        config.write(asked)
    step((*MAKE, "olddefconfig"), tree)
    missing = sorted(refused(asked, (tree / ".config").read_text(encoding="utf-8")))
    if missing:
        message = f"this kernel source does not take the options {', '.join(missing)}"
        raise KernelBuildError(message)


def _remembered() -> tuple[str, ...]:
    """Of commit after commit of one tree most files are the same: ccache has them, where it is installed."""
    return ("CC=ccache gcc",) if shutil.which("ccache") is not None else ()


def _compile(tree: Path, jobs: int, progress: Progress, more: tuple[str, ...] = ()) -> None:
    log = tree / "build.log"
    process = subprocess.Popen(
        (*MAKE, *more, *_TARGET, f"-j{jobs}"),
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=environment(),
        text=True,
        start_new_session=True,
    )
    with log.open("w", encoding="utf-8") as file, process:
        try:
            assert process.stdout is not None
            for count, line in enumerate(process.stdout):
                file.write(line)
                progress("compiling", 0.12 + 0.87 * min(count / _EXPECTED_LINES, 1.0))
        except BaseException:
            # make and its compilers, whoever got the signal: a terminal sends it to all, kill only to us.
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0:
        lines = log.read_text(encoding="utf-8").splitlines()
        errors = [line for line in lines if "error:" in line or "***" in line]
        kept = kernels_folder() / "failed-build.log"
        shutil.copy(log, kept)
        message = f"the kernel did not compile: {(errors or ['no error line'])[0].strip()}; the log is {kept}"
        raise KernelBuildError(message)


def _has_seccomp(tree: Path) -> bool:
    """Whether this User Mode Linux can run its processes under seccomp: faster than ptrace."""
    return "seccomp=" in (tree / "arch/um/os-Linux/start_up.c").read_text(encoding="utf-8")


def environment() -> dict[str, str]:
    """What make gets: nothing of the user's that could steer it, nor of a make that started us."""
    kept = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    return kept | _SET


def step(argv: tuple[str, ...], cwd: Path) -> None:
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        message = f"{' '.join(argv[:3])} failed: {' / '.join(said)}"
        raise KernelBuildError(message)


def compilers_at_once() -> int:
    """As many as may run at once, and have the memory to."""
    return processes_at_once(_COMPILER_BYTES)


def expected_minutes(cpus: int) -> int:
    """How long a build takes, for people who may have other plans."""
    return math.ceil((_FETCH_S + _COMPILE_CPU_S / cpus) / 60)


def require_tools() -> None:
    """Raise KernelBuildError with what stands in the way of a build on this machine."""
    reason = cannot_build()
    if reason is not None:
        raise KernelBuildError(reason)


def cannot_build() -> str | None:
    """Why no guest can be built here, and what to do; None where it can."""
    elsewhere = "or install the guest ready made: pip install fabbbr-guest"
    foreign = foreign_processor()
    if foreign is not None:
        return foreign
    missing = sorted({package for tool, package in _BUILD_TOOLS.items() if shutil.which(tool) is None})
    if not missing:
        return None
    return (
        f"building the guest needs {', '.join(missing)}: apt-get install {' '.join(missing)}; {elsewhere}; "
        "or use Debian's prebuilt kernel in real time: apt-get install user-mode-linux kmod, then "
        "fabbbr run … --clock real"
    )


def foreign_processor() -> str | None:
    """Why no guest can run here, built or ready made; None where it can."""
    if platform.machine() in _PROCESSORS:
        return None
    return (
        f"the guest runs on x86-64 and this machine is {platform.machine()}: User Mode Linux knows no "
        "other processor; use a Mininet host: fabbbr run … --backend mininet"
    )


def require_space(root: Path) -> None:
    free = shutil.disk_usage(root).free
    if free < SPACE_BYTES:
        message = (
            f"building the guest kernel needs {SPACE_BYTES / 1e9:.0f} GB below {root}, and "
            f"{free / 1e9:.1f} GB are free; set XDG_CACHE_HOME (or TMPDIR) to a roomier place"
        )
        raise KernelBuildError(message)


@contextmanager
def only_one_builder(root: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock on ``root``, and sweep what builders that were killed left there."""
    with (root / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another build", 0.0)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in root.glob("build-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def version_key(release: str) -> tuple[int, ...]:
    """Of two releases the later has the greater key."""
    return tuple(int(number) for number in re.findall(r"\d+", release))
