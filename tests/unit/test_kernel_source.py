"""Linux source packages: what Debian and Ubuntu put into them."""

import pytest

from fabbbr.backends.guest.kernel.source import tarball_in
from fabbbr.errors import KernelBuildError

# The ends of what dpkg-deb --contents says of linux-source-6.1 6.1.192-2 and linux-source-6.8.0 6.8.0-149.149.
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
"""


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
