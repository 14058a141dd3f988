"""Fetches a Linux source package that the machine's distribution offers: the newest, or that of a series."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabbbr.backends.guest.apt import archive_here, private_apt, run, security_site
from fabbbr.errors import KernelBuildError

_PACKAGE = re.compile(r"^linux-source-(\d+)\.(\d+)(?:\.(\d+))?$", re.MULTILINE)
_OLDEST = (6, 12)
"""Of what is taken unasked."""
_ARCHITECTURES = (
    "alpha", "arc", "arm", "arm64", "csky", "hexagon", "loongarch", "m68k", "microblaze", "mips", "nios2",
    "openrisc", "parisc", "powerpc", "riscv", "s390", "sh", "sparc", "xtensa",
)  # fmt: skip
_DEVICES = ("clk", "gpu", "iio", "infiniband", "media", "net/*", "pinctrl", "scsi", "staging", "usb")
LEFT_OUT = (
    "Documentation/*.rst",
    *(f"arch/{name}/*.{suffix}" for name in _ARCHITECTURES for suffix in ("[chS]", "dts*")),
    *(f"drivers/{name}/*.[ch]" for name in _DEVICES),
    "sound/*.[ch]",
    "tools/perf/*",
    "tools/testing/*",
)
"""Half of the source's files: of what a guest cannot have, and where no option of a configuration stands."""


@dataclass(frozen=True, kw_only=True)
class SourcePackage:
    """A Linux source package and the apt options that reach it."""

    name: str
    version: str
    apt_options: tuple[str, ...]


def newest_source(work: Path) -> SourcePackage:
    """The newest source package on offer, from the machine's own suites or Debian's newer ones."""
    offers = [_newest(options) for options in (_newer_suites(work), ()) if options is not None]
    found = [offer for offer in offers if offer is not None]
    if not found:
        message = (
            "no Linux source package (linux-source-6.12 or newer) is offered by this "
            "machine's package sources; run apt-get update, or use Debian's prebuilt guest in real time: "
            "apt-get install user-mode-linux kmod, then fabbbr run … --clock real"
        )
        raise KernelBuildError(message)
    return max(found, key=lambda offer: _numbers(offer.name))


def of_series(series: str, work: Path) -> SourcePackage:
    """The package of a series, as 6.1 or 5.10; raise KernelBuildError where nobody offers it.

    The machine's own suites come first, then the security updates of earlier releases, these, and newer ones.
    """
    found = re.fullmatch(r"(\d+)\.(\d+)", series)
    wanted = (int(found[1]), int(found[2])) if found is not None else None
    for options in _everywhere(work):
        usable = [name for name in _offered(options) if _numbers(name)[:2] == wanted]
        if usable:
            return _package(max(usable, key=_numbers), options)
    message = (
        f"no Linux source package of the series {series} is offered by this machine's package sources, nor "
        "by its distribution's other releases; run apt-get update, or build from a kernel tree of your own"
    )
    raise KernelBuildError(message)


def _everywhere(work: Path) -> Iterator[tuple[str, ...]]:
    """The apt options of one place after the other; lists are fetched when it comes to them."""
    yield ()
    found = archive_here()
    if found is None:
        return
    archive, site = found
    if archive.security:
        yield private_apt(work / "security", archive, security_site(site), archive.security).options
    yield private_apt(work / "older", archive, site, archive.older).options
    yield private_apt(work / "newer", archive, site, archive.newest).options


def _newer_suites(work: Path) -> tuple[str, ...] | None:
    found = archive_here()
    if found is None:
        return None
    archive, site = found
    return private_apt(work / "apt", archive, site, archive.newest).options


def unpack(package: SourcePackage, folder: Path) -> Path:
    """Download the package into ``folder`` and return the path of the unpacked kernel tree."""
    run(("apt-get", *package.apt_options, "download", package.name), cwd=folder)
    archive = next(folder.glob(f"{package.name}_*.deb"))
    tarball, decompress = tarball_in(run(("dpkg-deb", "--contents", str(archive))), package.name)
    # Straight from the package into the tree: the tarball inside is never written to disk.
    pipeline = f'dpkg-deb --fsys-tarfile "$1" | tar -xO "$2" | {decompress} | tar -x "${{@:3}}"'
    left_out = (f"--exclude={package.name}/{pattern}" for pattern in LEFT_OUT)
    run(("bash", "-o", "pipefail", "-c", pipeline, "unpack", str(archive), tarball, *left_out), cwd=folder)
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
    usable = [name for name in _offered(options) if _numbers(name) >= _OLDEST]
    return _package(max(usable, key=_numbers), options) if usable else None


def _offered(options: tuple[str, ...]) -> list[str]:
    names = run(("apt-cache", *options, "search", "--names-only", r"^linux-source-[0-9]"))
    return [name for line in names.splitlines() if _PACKAGE.match(name := line.split(" ")[0])]


def _package(name: str, options: tuple[str, ...]) -> SourcePackage:
    match = re.search(r"Candidate: (\S+)", run(("apt-cache", *options, "policy", name)))
    return SourcePackage(name=name, version=match[1] if match else "unknown", apt_options=options)


def _numbers(name: str) -> tuple[int, ...]:
    match = _PACKAGE.match(name)
    assert match is not None
    return tuple(int(part) for part in match.groups(default="0"))
