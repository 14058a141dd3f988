"""Fetches the newest Linux source package that the machine's own distribution offers.

A release is older than the kernels that we want, but its distribution has newer suites: Debian's backports
and unstable, Ubuntu's newest release with long support. They are read through a private apt configuration
below the cache folder, from the mirror that the system already uses, so that neither the system's package
lists nor its configuration change and no root is needed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fabbbr.errors import KernelBuildError

_KEYRINGS = Path("/usr/share/keyrings")
_PACKAGE = re.compile(r"^linux-source-(\d+)\.(\d+)(?:\.(\d+))?$", re.MULTILINE)
_OLDEST = (6, 12)
"""Linux 6.1 builds but oopses with our configuration."""
_TIMEOUT_S = 600


@dataclass(frozen=True, kw_only=True)
class _Archive:
    """Where a distribution keeps newer kernels, and the keys that sign them."""

    keyring: Path
    suites: tuple[str, ...]


_ARCHIVES = {
    "Debian": _Archive(keyring=_KEYRINGS / "debian-archive-keyring.gpg", suites=("trixie-backports", "sid")),
    "Ubuntu": _Archive(
        keyring=_KEYRINGS / "ubuntu-archive-keyring.gpg", suites=("resolute", "resolute-updates")
    ),
}
"""By the origin that a distribution's own package lists name."""


@dataclass(frozen=True, kw_only=True)
class SourcePackage:
    """A Linux source package and the apt options that reach it."""

    name: str
    version: str
    apt_options: tuple[str, ...]


def newest_source(work: Path) -> SourcePackage:
    """The newest source package on offer, from the machine's own suites or Debian's newer ones."""
    offers = [_newest(options) for options in (private_apt(work), ()) if options is not None]
    found = [offer for offer in offers if offer is not None]
    if not found:
        message = (
            "no Linux source package (linux-source-6.12 or newer) is offered by this "
            "machine's package sources; run apt-get update, or use Debian's prebuilt guest in real time: "
            "apt-get install user-mode-linux kmod, then fabbbr run … --clock real"
        )
        raise KernelBuildError(message)
    return max(found, key=lambda offer: _numbers(offer.name))


def unpack(package: SourcePackage, folder: Path) -> Path:
    """Download the package into ``folder`` and return the path of the unpacked kernel tree."""
    _run(("apt-get", *package.apt_options, "download", package.name), cwd=folder)
    archive = next(folder.glob(f"{package.name}_*.deb"))
    tarball, decompress = tarball_in(_run(("dpkg-deb", "--contents", str(archive))), package.name)
    # Straight from the package into the tree: the tarball inside is never written to disk.
    pipeline = (
        'dpkg-deb --fsys-tarfile "$1" | tar -xO "$2" '
        f"| {decompress} | tar -x --exclude='*/drivers/gpu/*.[ch]' --exclude='*/Documentation/*.rst'"
    )
    _run(("bash", "-o", "pipefail", "-c", pipeline, "unpack", str(archive), tarball), cwd=folder)
    archive.unlink()
    return folder / package.name


def tarball_in(contents: str, name: str) -> tuple[str, str]:
    """The source's path inside the package, from ``dpkg-deb --contents``, and what decompresses it.

    Debian has it as xz in ``usr/src``, Ubuntu as bzip2 one folder deeper, with a
    link where Debian has the file.
    """
    for line in contents.splitlines():
        mode, *_, path = line.split(maxsplit=5)
        suffix = path.partition(f"/{name}.tar.")[2]
        if mode.startswith("-") and suffix in _DECOMPRESS:
            return path, _DECOMPRESS[suffix]
    message = f"package {name} holds no source that fabbbr knows to unpack ({name}.tar.xz or .tar.bz2)"
    raise KernelBuildError(message)


_DECOMPRESS = {"xz": "xz -dT0", "bz2": "bzip2 -d"}


def _newest(options: tuple[str, ...]) -> SourcePackage | None:
    names = _run(("apt-cache", *options, "search", "--names-only", r"^linux-source-[0-9]"))
    known = [name for line in names.splitlines() if _PACKAGE.match(name := line.split(" ")[0])]
    usable = [name for name in known if _numbers(name) >= _OLDEST]
    if not usable:
        return None
    best = max(usable, key=_numbers)
    policy = _run(("apt-cache", *options, "policy", best))
    match = re.search(r"Candidate: (\S+)", policy)
    version = match[1] if match else "unknown"
    return SourcePackage(name=best, version=version, apt_options=options)


def _numbers(name: str) -> tuple[int, ...]:
    match = _PACKAGE.match(name)
    assert match is not None
    return tuple(int(part) for part in match.groups(default="0"))


def private_apt(work: Path) -> tuple[str, ...] | None:
    """Options for an apt of our own that reads the distribution's newer suites; None where that cannot be."""
    mirror = _mirror()
    if mirror is None:
        return None
    archive, site = mirror
    if not archive.keyring.exists():
        return None
    root = work / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    sources = root / "sources.list"
    sources.write_text(
        "".join(f"deb [signed-by={archive.keyring}] {site} {suite} main\n" for suite in archive.suites),
        encoding="ascii",
    )
    options = (
        "-o", f"Dir::Etc::SourceList={sources}",
        "-o", "Dir::Etc::SourceParts=/dev/null",
        "-o", f"Dir::State::Lists={root}/lists",
        "-o", f"Dir::Cache={root}/cache",
        # apt would drop to its own user, who cannot write below a private folder.
        "-o", "APT::Sandbox::User=",
        "-o", "Acquire::Languages=none",
        "-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
    )  # fmt: skip
    # One suite may be out of reach or past its date; apt keeps what it could check of the others.
    with suppress(KernelBuildError):
        _run(("apt-get", *options, "update"))
    return options


def _mirror() -> tuple[_Archive, str] | None:
    """The archive of this machine's distribution, and the address of the mirror that serves its release."""
    if shutil.which("apt-get") is None:
        message = (
            "this machine has no apt-get: the guest kernel is built from a Debian or Ubuntu source package"
        )
        raise KernelBuildError(message)
    listing = _run(("apt-get", "indextargets", "--format", "$(IDENTIFIER)|$(ORIGIN)|$(SUITE)|$(SITE)"))
    for line in listing.splitlines():
        identifier, origin, suite, site = line.split("|", 3)
        if identifier == "Packages" and origin in _ARCHIVES and "security" not in suite:
            return _ARCHIVES[origin], site
    return None


def _run(argv: tuple[str, ...], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"{argv[0]} could not be run: {error}"
        raise KernelBuildError(message) from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        message = f"{' '.join(argv[:1] + argv[-2:])} failed: {' '.join(last) or done.returncode}"
        raise KernelBuildError(message)
    return done.stdout
