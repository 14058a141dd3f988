"""The distribution's guest kernel: used where it can run, refused with the reason where it cannot."""

import pytest

from fabbbr.backends.guest.kernel import prebuilt
from fabbbr.backends.guest.kernel.prebuilt import cannot_run, prebuilt_kernel
from fabbbr.errors import EnvironmentUnfitError

AMX = "flags : fpu sse avx512f amx_bf16 amx_tile amx_int8"
PLAIN = "flags : fpu sse avx512f"
RELEASE = "99.1.2"


@pytest.mark.parametrize(
    ("release", "flags", "runs"),
    [("6.1.176", AMX, False), ("6.1.176", PLAIN, True), ("7.2.7", AMX, True), ("6.12.48", AMX, True)],
)
def test_an_old_kernel_is_refused_on_a_cpu_whose_state_it_cannot_hold(release, flags, runs):
    assert (cannot_run(release, flags) is None) is runs


@pytest.fixture
def unpacked(tmp_path, monkeypatch):
    """Put a package on PATH, unpacked below a folder of its own; ``linux.uml`` does what it is asked to."""

    def unpack(script=f"echo {RELEASE}", *, modules=RELEASE, tools=("modprobe",)):
        (tmp_path / "bin").mkdir()
        for name, text in {"linux.uml": script, **dict.fromkeys(tools, "true")}.items():
            program = tmp_path / "bin" / name
            program.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
            program.chmod(0o755)
        (tmp_path / "lib/uml/modules" / modules).mkdir(parents=True)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setattr(prebuilt, "search_path", lambda: str(tmp_path / "bin"))
        return tmp_path

    return unpack


def test_a_machine_without_the_package_has_no_prebuilt_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert prebuilt_kernel() is None


def test_a_package_unpacked_without_root_is_as_good_as_an_installed_one(unpacked):
    root = unpacked()
    kernel = prebuilt_kernel()
    assert (kernel.binary, kernel.modules) == (root / "bin/linux.uml", root / "lib/uml/modules")
    assert kernel.release == RELEASE


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ({"script": "echo 'GLIBC_2.38 not found' >&2; exit 1"}, ("GLIBC_2.38 not found", "own distribution")),
        ({"script": "exit 3"}, ("exit status 3", "fabbbr guest build")),
        ({"script": "echo hello"}, ("hello", "fabbbr guest build")),
        ({"script": "true"}, ("exit status 0", "fabbbr guest build")),
        ({"modules": "98.0.0"}, ("no modules at", RELEASE, "--reinstall user-mode-linux")),
        ({"tools": ()}, ("modprobe is missing", "apt-get install kmod")),
    ],
)
def test_a_prebuilt_kernel_that_cannot_work_is_refused_with_the_reason_and_the_remedy(
    unpacked, package, words
):
    unpacked(**package)
    with pytest.raises(EnvironmentUnfitError) as caught:
        prebuilt_kernel()
    for word in words:
        assert word in str(caught.value)
