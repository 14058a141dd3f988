"""A private apt: the distribution's suites of our choice, without touching the system's own lists.

A release is older than the kernels and tools that we want, but its distribution has newer suites: Debian's
stable release, backports and unstable, Ubuntu's newest release with long support; and older ones, for older
kernels. They are read through a configuration of our own below the cache folder, from the mirrors that the
system already uses, so that neither the system's package lists nor its configuration change and no root is
needed.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabbbr.errors import KernelBuildError

_KEYRINGS = Path("/usr/share/keyrings")
_TIMEOUT_S = 600


@dataclass(frozen=True, kw_only=True)
class Archive:
    """Where a distribution keeps what is newer than its release, and the keys that sign it."""

    keyring: Path
    components: str
    """Of each suite."""
    newest: tuple[str, ...]
    """Suites with the newest kernel sources and tools."""
    base: tuple[str, ...]
    """A whole distribution that changes rarely, for everything else."""
    older: tuple[str, ...]
    """Suites of this and earlier releases, for older kernels; the newest updates first."""
    security: tuple[str, ...] = ()
    """Suites of theirs on the site of security updates, where that is another."""


@dataclass(frozen=True, kw_only=True)
class PrivateApt:
    """An apt of our own whose package lists were fetched."""

    options: tuple[str, ...]
    """What each of its commands is given."""
    unread: str
    """What it said of lists that it could not read; empty when it read all."""


_ARCHIVES = {
    "Debian": Archive(
        keyring=_KEYRINGS / "debian-archive-keyring.gpg",
        components="main",
        newest=("trixie-backports", "sid"),
        base=("trixie", "trixie-updates"),
        older=("trixie", "bookworm", "bullseye"),
        security=("trixie-security", "bookworm-security", "bullseye-security"),
    ),
    "Ubuntu": Archive(
        keyring=_KEYRINGS / "ubuntu-archive-keyring.gpg",
        # iperf3 and Mininet are in universe.
        components="main universe",
        newest=("resolute", "resolute-updates"),
        base=("resolute", "resolute-updates"),
        older=("noble-updates", "noble", "jammy-updates", "jammy"),
    ),
}
"""By the origin that a distribution's own package lists name."""


def archive_here() -> tuple[Archive, str] | None:
    """The archive of this machine's distribution, and the address of the mirror that serves its release."""
    if shutil.which("apt-get") is None:
        message = (
            "this machine has no apt-get: the guest is built from Debian or Ubuntu packages; "
            "install it ready made instead: pip install fabbbr-guest"
        )
        raise KernelBuildError(message)
    for origin, suite, site in _suites_here():
        if origin in _ARCHIVES and "security" not in suite:
            archive = _ARCHIVES[origin]
            return (archive, site) if archive.keyring.exists() else None
    return None


def security_site(mirror: str) -> str:
    """Where the machine has security updates from; as they stand beside most mirrors, where it has none."""
    own = (site for _, suite, site in _suites_here() if "security" in suite and site != mirror)
    return next(own, f"{mirror}-security")


def _suites_here() -> Iterator[tuple[str, str, str]]:
    """Origin, suite and site of the package lists that the machine has."""
    listing = run(("apt-get", "indextargets", "--format", "$(IDENTIFIER)|$(ORIGIN)|$(SUITE)|$(SITE)"))
    for line in listing.splitlines():
        identifier, origin, suite, site = line.split("|", 3)
        if identifier == "Packages":
            yield origin, suite, site


def private_apt(
    root: Path, archive: Archive, site: str, suites: tuple[str, ...], *settings: str
) -> PrivateApt:
    """An apt of our own in ``root`` with the ``settings``, its lists of ``suites`` fetched."""
    for folder in ("lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    sources = root / "sources.list"
    sources.write_text(
        "".join(
            f"deb [signed-by={archive.keyring}] {site} {suite} {archive.components}\n"
            for suite in dict.fromkeys(suites)
        ),
        encoding="ascii",
    )
    given = (
        f"Dir::Etc::SourceList={sources}",
        "Dir::Etc::SourceParts=/dev/null",
        f"Dir::State::Lists={root}/lists",
        f"Dir::Cache={root}/cache",
        # apt would drop to its own user, who cannot write below a private folder.
        "APT::Sandbox::User=",
        # A mirror that is behind still has what the distribution signed, and nobody can reach into a guest.
        "Acquire::Check-Valid-Until=false",
        "Acquire::Languages=none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
        *settings,
    )
    options = tuple(word for setting in given for word in ("-o", setting))
    # One suite may be out of reach or past its date; apt keeps what it could check of the others.
    return PrivateApt(options=options, unread=_complaints(("apt-get", *options, "update")))


def _complaints(argv: tuple[str, ...]) -> str:
    """What it says of failures, of which only some end it with one."""
    try:
        said = _ended(argv, None).stderr
    except KernelBuildError as error:
        return str(error)
    return "; ".join(line[3:].strip() for line in said.splitlines() if line[:3] in ("E: ", "W: "))


def run(argv: tuple[str, ...], cwd: Path | None = None) -> str:
    """Standard output of a package tool; raise KernelBuildError with its last word when it fails."""
    done = _ended(argv, cwd)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        message = f"{' '.join(argv[:1] + argv[-2:])} failed: {' '.join(last) or done.returncode}"
        raise KernelBuildError(message)
    return done.stdout


def _ended(argv: tuple[str, ...], cwd: Path | None) -> subprocess.CompletedProcess[str]:
    """A package tool that was run, whatever its exit status."""
    try:
        return subprocess.run(
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
