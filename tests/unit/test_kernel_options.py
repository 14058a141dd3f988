"""Options that not every kernel has."""

from pathlib import Path

import pytest

from fabbbr.backends.guest.kernel import build
from fabbbr.backends.guest.kernel.options import asked_of, refused, version_of
from fabbbr.errors import KernelBuildError

ASKED = """\
# What all have.
CONFIG_NET=y
# CONFIG_SMALL is not set  # from 6.10
CONFIG_FULL=y  # until 6.9
CONFIG_NAME="a # b"
"""
GUEST = (Path(build.__file__).parent / "guest.config").read_text(encoding="ascii")


@pytest.mark.parametrize(
    ("version", "there"),
    [((5, 10), "CONFIG_FULL=y"), ((6, 9), "CONFIG_FULL=y"), ((6, 10), "# CONFIG_SMALL is not set")],
)
def test_a_line_is_asked_of_the_kernels_that_have_its_option(version, there):
    assert asked_of(version, ASKED).splitlines() == [
        "# What all have.", "CONFIG_NET=y", there, 'CONFIG_NAME="a # b"',
    ]  # fmt: skip


@pytest.mark.parametrize("version", [(5, 10), (6, 1), (6, 12), (7, 3)])
def test_the_guests_own_configuration_has_no_mark_left_and_names_no_option_twice(version):
    lines = [line for line in asked_of(version, GUEST).splitlines() if "CONFIG_" in line]
    names = [line.removeprefix("# ").split("=")[0].split(" ")[0] for line in lines]
    assert not any(" # " in line for line in lines)
    assert len(set(names)) == len(names)


def test_what_a_kernel_does_not_take_is_named():
    asked = "CONFIG_NET=y\nCONFIG_GONE=y\n# CONFIG_OFF is not set\n# CONFIG_UNKNOWN is not set\n"
    taken = "CONFIG_NET=y\nCONFIG_OFF=y\n# CONFIG_GONE is not set\n"
    assert list(refused(asked, taken)) == ["CONFIG_GONE=y", "# CONFIG_OFF is not set"]


def test_the_version_is_the_makefiles(tmp_path):
    with pytest.raises(KernelBuildError, match="no kernel source"):
        version_of(tmp_path)
    makefile = tmp_path / "Makefile"
    makefile.write_text("# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\n", encoding="ascii")
    assert version_of(tmp_path) == (6, 12)
    makefile.write_text("all:\n\ttrue\n", encoding="ascii")
    with pytest.raises(KernelBuildError, match="names no version"):
        version_of(tmp_path)
