"""Building the guest kernel, without a kernel."""

import json
import os
import tempfile
import time
from pathlib import Path

import pytest

from fabbbr.backends.guest.kernel import build
from fabbbr.backends.guest.kernel.build import (
    _compile,
    cached_kernel,
    kernels_folder,
    recipe_hash,
    workshop_for,
)
from fabbbr.errors import EnvironmentUnfitError, KernelBuildError
from fabbbr.files import sha256_of

LONG_S = 1000
MAKEFILE = f"""\
linux:
\t@sleep {LONG_S} & echo $$! >compiler; echo compiling; wait
"""


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Nobody may have waited for it yet.
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "Z"


def test_who_ends_the_build_ends_make_and_its_compilers(tmp_path):
    """A kill reaches fabbbr alone, unlike Ctrl-C: it went on until make had built everything."""
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="ascii")

    def interrupted(_what, _share):
        # make itself may have something to say first, and the shell makes the file before it writes to it.
        if (tmp_path / "compiler").exists() and (tmp_path / "compiler").read_text(encoding="ascii"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _compile(tmp_path, 1, interrupted)
    compiler = int((tmp_path / "compiler").read_text(encoding="ascii"))
    deadline = time.monotonic() + 10
    while not gone(compiler):
        assert time.monotonic() < deadline, f"process {compiler} is still there"
        time.sleep(0.01)


def test_a_user_without_a_home_folder_is_told_what_to_set(monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.raises(EnvironmentUnfitError, match=r"has no home folder .* set HOME or XDG_CACHE_HOME"):
        kernels_folder()


TELLING = """\
linux:
\t@echo '$(MAKEFLAGS)|$(RUSTC)|$(PAHOLE)' >told; env >>told
"""


def test_neither_the_users_environment_nor_what_is_installed_steers_a_build(tmp_path, monkeypatch):
    """Kernels differed by the version of a Rust compiler that had no part in them."""
    (tmp_path / "Makefile").write_text(TELLING, encoding="ascii")
    for name in ("MAKEFLAGS", "KCFLAGS", "LOCALVERSION", "CROSS_COMPILE", "KBUILD_BUILD_VERSION"):
        monkeypatch.setenv(name, "theirs")
    monkeypatch.setenv("MAKEFLAGS", "s")
    _compile(tmp_path, 1, lambda *_: None)
    first, *environment = (tmp_path / "told").read_text(encoding="utf-8").splitlines()
    flags, rustc, pahole = first.split("|")
    assert not flags.startswith("s")
    assert rustc == pahole == "fabbbr-has-none"
    assert not any("theirs" in line for line in environment)
    assert {"KBUILD_BUILD_USER=fabbbr", f"PATH={os.environ['PATH']}"} <= set(environment)


@pytest.mark.parametrize("name", ["with a blank", "with:colon", "tab\tulator"])
def test_a_kernel_is_not_built_below_a_path_that_its_makefile_refuses(tmp_path, monkeypatch, name):
    """It did nothing but say so, after a minute of fetching."""
    root, temporary = tmp_path / name, tmp_path / "temporary"
    for folder in (root, temporary):
        folder.mkdir()
    (tmp_path / "link").symlink_to(root)  # make follows links
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert workshop_for(temporary) == temporary
    assert workshop_for(root) == temporary
    assert workshop_for(tmp_path / "link") == temporary
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    monkeypatch.setattr(build, "_LARGE_TEMPORARY_FILES", tmp_path / "link")
    with pytest.raises(KernelBuildError, match="set TMPDIR to a folder without"):
        workshop_for(root)


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Put a kernel of these properties into an empty cache; return its folder."""

    def put(**properties):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        folder = tmp_path / "fabbbr" / "kernels" / "copied"
        folder.mkdir(parents=True)
        (folder / "linux").write_bytes(b"a kernel")
        described = {
            "folder": "/somebody/elses", "release": "7.0", "package": "p", "package_version": "1",
            "recipe": recipe_hash(), "config_sha256": "0", "kernel_sha256": sha256_of(folder / "linux"),
            "seccomp": True, "clock_address": 5, "build_s": 1.0,
        }  # fmt: skip
        (folder / "kernel.json").write_text(json.dumps(described | properties), encoding="utf-8")
        return folder

    return put


def test_a_kernel_is_found_where_it_is_and_not_where_it_was_copied_from(cached):
    folder = cached()
    found = cached_kernel()
    assert found is not None
    assert found.binary == folder / "linux"


@pytest.mark.parametrize("key", ["folder", "release", "recipe", "kernel_sha256", "seccomp", "build_s"])
@pytest.mark.parametrize("value", [5, "x", None, [], {}])
def test_a_description_of_a_kernel_that_is_none_is_no_kernel_and_no_traceback(cached, key, value):
    cached(**{key: value})
    found = cached_kernel()
    assert found is None or isinstance(getattr(found, key), type(value) | float)
