"""The packages that the guest's root is made of: resolved and fetched by a private apt, and unpacked.

What is installed on this machine plays no part: apt resolves for a machine that has nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fabbbr.backends.guest.apt import Archive, PrivateApt, archive_here, private_apt, run
from fabbbr.errors import KernelBuildError
from fabbbr.files import sha256_of

_WITH_DEPENDENCIES = (
    "libc6", "python3-minimal", "libpython3-stdlib", "iperf3", "iproute2", "ethtool", "iputils-ping",
    "procps", "grep", "coreutils", "dash",
)  # fmt: skip
_ALONE = ("mininet", "python3-packaging")
"""Mininet's modules and what they import: what its package depends on is for Open vSwitch and shells."""
_NEWEST = "iperf3 libiperf0"
_INSTALLED = re.compile(r"^Inst (\S+) \((\S+) ", re.MULTILINE)
_PINS = """\
Package: *
Pin: release n={base}
Pin-Priority: 900

Package: {newest}
Pin: release *
Pin-Priority: 950
"""


@dataclass(frozen=True, kw_only=True)
class Package:
    """A binary package, as it was fetched."""

    name: str
    version: str
    source: str
    """Source package and its version."""
    sha256: str
    file: Path

    def files(self) -> frozenset[str]:
        """Paths of all that it installs, without a leading slash."""
        listing = run(("dpkg-deb", "--contents", str(self.file)))
        return frozenset(line.split(maxsplit=5)[5].partition(" -> ")[0][2:] for line in listing.splitlines())


def fetch(work: Path) -> tuple[tuple[Package, ...], str]:
    """Download all packages into ``work``, or raise KernelBuildError with the remedy.

    Return them by name, and what was said of package lists that could not be read.
    """
    found = archive_here()
    if found is None:
        message = (
            "the guest's root is made of Debian or Ubuntu packages, and this machine's package sources are "
            "neither; install the guest ready made instead: pip install fabbbr-guest"
        )
        raise KernelBuildError(message)
    apt = _for_an_empty_machine(work / "apt", *found)
    folder = work / "packages"
    folder.mkdir()
    wanted = _resolved(apt.options)
    run(("apt-get", *apt.options, "download", *wanted, *_ALONE), cwd=folder)
    return tuple(sorted(map(_described, folder.glob("*.deb")), key=lambda package: package.name)), apt.unread


def _for_an_empty_machine(root: Path, archive: Archive, site: str) -> PrivateApt:
    root.mkdir(parents=True)
    (root / "status").write_text("", encoding="ascii")
    pins = "\n".join(_PINS.format(base=suite, newest=_NEWEST) for suite in archive.base)
    (root / "preferences").write_text(pins, encoding="ascii")
    return private_apt(
        root, archive, site, (*archive.base, *archive.newest),
        f"Dir::State::status={root}/status",
        f"Dir::Etc::Preferences={root}/preferences",
        "Dir::Etc::PreferencesParts=/dev/null",
        "APT::Install-Recommends=false",
    )  # fmt: skip


def _resolved(options: tuple[str, ...]) -> list[str]:
    """``name=version`` of all packages that apt would install."""
    plan = run(("apt-get", *options, "install", "--simulate", "--yes", *_WITH_DEPENDENCIES))
    return ["=".join(found) for found in _INSTALLED.findall(plan)]


def _described(file: Path) -> Package:
    form = "${Package}\n${Version}\n${source:Package} ${source:Version}\n"
    name, version, source = run(("dpkg-deb", "--show", f"--showformat={form}", str(file))).splitlines()
    return Package(name=name, version=version, source=source, sha256=sha256_of(file), file=file)


def unpack(packages: Iterable[Package], tree: Path) -> None:
    """Lay out the files of all packages below ``tree``."""
    tree.mkdir()
    for package in packages:
        run(("dpkg-deb", "--extract", str(package.file), str(tree)))
