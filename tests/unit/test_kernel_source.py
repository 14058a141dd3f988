"""Linux source packages: what Debian and Ubuntu put into them."""

import subprocess
from pathlib import Path

import pytest

from fabbbr.backends.guest import apt as private
from fabbbr.backends.guest.apt import Archive, private_apt
from fabbbr.backends.guest.kernel import source
from fabbbr.backends.guest.kernel.source import tarball_in
from fabbbr.errors import KernelBuildError

# The ends of what dpkg-deb --contents says of linux-source-6.1 6.1.192-2 and
# linux-source-6.8.0 6.8.0-149.149.
DEBIAN = """\
-rw-r--r-- root/root   1303450 2026-11-16 10:17 ./usr/share/doc/linux-source-6.1/changelog.Debian.gz
-rw-r--r-- root/root     13378 2026-11-16 10:17 ./usr/share/doc/linux-source-6.1/copyright
drwxr-xr-x root/root         0 2026-11-16 10:17 ./usr/src/
-rw-r--r-- root/root 138009412 2026-11-16 10:17 ./usr/src/linux-source-6.1.tar.xz
"""
UBUNTU = """\
drwxr-xr-x root/root         0 2026-10-23 12:10 ./usr/src/
drwxr-xr-x root/root         0 2026-10-23 12:10 ./usr/src/linux-source-6.8.0/
-rw-r--r-- root/root 360940265 2026-10-23 12:10 ./usr/src/linux-source-6.8.0/linux-source-6.8.0.tar.bz2
lrwxrwxrwx root/root         0 2026-10-23 12:10 ./usr/src/linux-source-6.8.0.tar.bz2 -> linux-source-6.8.0/linux-source-6.8.0.tar.bz2
"""  # noqa: E501


@pytest.mark.parametrize(
    ("contents", "name", "path", "tool"),
    [
        (DEBIAN, "linux-source-6.1", "./usr/src/linux-source-6.1.tar.xz", "xz"),
        (UBUNTU, "linux-source-6.8.0", "./usr/src/linux-source-6.8.0/linux-source-6.8.0.tar.bz2", "bzip2"),
    ],
)
def test_the_source_is_found_wherever_a_distribution_puts_it(contents, name, path, tool):
    found, decompress = tarball_in(contents, name)
    assert (found, decompress.split()[0]) == (path, tool)


def test_a_package_without_a_source_is_refused_by_name():
    with pytest.raises(KernelBuildError, match=r"linux-source-6\.1 holds no source"):
        tarball_in(UBUNTU, "linux-source-6.1")


EXPIRED = "E: Release file for http://mirror.invalid/dists/sid/InRelease is expired (invalid since 16d).\n"


def test_a_suite_that_cannot_be_read_does_not_take_the_others_with_it_and_is_named(monkeypatch, tmp_path):
    """Unstable was past its date on a mirror, and the kernel of backports was not found either.

    Then it was, but with another iperf3, and so another image, without a word.
    """
    keyring = tmp_path / "keyring.gpg"
    keyring.touch()
    archive = Archive(keyring=keyring, components="main", newest=("good", "expired"), base=(), older=())
    monkeypatch.setattr(source, "archive_here", lambda: (archive, "http://mirror.invalid"))

    def apt(argv, cwd):
        if argv[-1] == "update":
            return subprocess.CompletedProcess(argv, 100, "", f"N: a note\n{EXPIRED}")
        found = {"search": "linux-source-7.3 - Linux\n", "policy": "  Candidate: 7.3.4-1\n"}
        said = next((text for word, text in found.items() if word in argv), "")
        return subprocess.CompletedProcess(argv, 0, said, "")

    monkeypatch.setattr(private, "_ended", apt)
    assert source.newest_source(tmp_path).version == "7.3.4-1"
    suites = (*archive.newest, *archive.base)
    assert private_apt(tmp_path, archive, "http://mirror.invalid", suites).unread == EXPIRED[3:-1]
    lines = (tmp_path / "apt" / "sources.list").read_text(encoding="ascii").splitlines()
    assert [line.split()[-2] for line in lines] == ["good", "expired"]


OFFERED = {
    "": ("linux-source - Linux (meta-package)\nlinux-source-6.1 - Linux\n", "6.1.192-2"),
    "security": ("linux-source-5.10 - Linux\nlinux-source-6.1 - Linux\n", "5.10.262-1"),
    "older": ("linux-source-5.10 - Linux\nlinux-source-6.8.0 - Linux\n", "6.8.0-149.149"),
    "newer": ("linux-source-7.2 - Linux\nlinux-source-7.3 - Linux\n", "7.3.4-1"),
}
"""Place → what apt finds there, and of which version."""


@pytest.fixture
def offered(monkeypatch, tmp_path):
    """Let apt offer that; return the places that were looked into."""
    keyring = tmp_path / "keyring.gpg"
    keyring.touch()
    archive = Archive(
        keyring=keyring,
        components="main",
        newest=("new",),
        base=(),
        older=("old",),
        security=("old-security",),
    )
    fetched = []

    def place_of(argv):
        lists = next((word for word in argv if word.startswith("Dir::State::Lists=")), "")
        return Path(lists.rpartition("=")[2]).parent.name if lists else ""

    def apt(argv, cwd):
        said = "Packages|Debian|oldstable|http://mirror.invalid/debian\n"
        if argv[-1] == "update":
            fetched.append(place_of(argv))
        if argv[0] == "apt-cache":
            names, version = OFFERED[place_of(argv)]
            said = names if "search" in argv else f"  Candidate: {version}\n"
        return subprocess.CompletedProcess(argv, 0, said, "")

    monkeypatch.setattr(source, "archive_here", lambda: (archive, "http://mirror.invalid/debian"))
    monkeypatch.setattr(private, "_ended", apt)
    return fetched


@pytest.mark.parametrize(
    ("series", "name", "version", "looked"),
    [
        ("6.1", "linux-source-6.1", "6.1.192-2", []),
        ("5.10", "linux-source-5.10", "5.10.262-1", ["security"]),
        ("6.8", "linux-source-6.8.0", "6.8.0-149.149", ["security", "older"]),
        ("7.3", "linux-source-7.3", "7.3.4-1", ["security", "older", "newer"]),
    ],
)
def test_a_series_is_looked_for_in_one_place_after_the_other(
    offered, tmp_path, series, name, version, looked
):
    found = source.of_series(series, tmp_path)
    assert (found.name, found.version, offered) == (name, version, looked)


@pytest.mark.parametrize("series", ["4.4", "6", "6.1.192", "main", ""])
def test_a_series_that_nobody_offers_is_named(offered, tmp_path, series):
    with pytest.raises(KernelBuildError, match=rf"the series {series} is offered"):
        source.of_series(series, tmp_path)
    assert offered == ["security", "older", "newer"]


def test_security_updates_come_from_where_the_machine_has_them(monkeypatch):
    mirror, lists = "http://mirror.invalid/debian", []
    monkeypatch.setattr(private, "run", lambda _argv: "\n".join(lists))
    lists.append(f"Packages|Debian|oldstable|{mirror}")
    assert private.security_site(mirror) == f"{mirror}-security"
    lists.append("Packages|Debian|oldstable-security|http://security.invalid/x")
    assert private.security_site(mirror) == "http://security.invalid/x"
