"""The guest image without building one: its archive, and where it is found."""

import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.backends.guest import GuestBackend
from fabbbr.backends.guest.image import build, found
from fabbbr.backends.guest.image.archive import write_archive
from fabbbr.backends.guest.image.found import (
    foreign_wheel,
    found_image,
    image_recipe,
    image_sha256,
    require_unaltered,
)
from fabbbr.backends.guest.image.root import INIT
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.files import sha256_of

HEADER_BYTES = 110


def archived(folder):
    out = io.BytesIO()
    write_archive(folder, out)
    return out.getvalue()


def entries(archive):
    """Name → (mode, content) as the kernel documents the format: buffer-format.rst, "newc"."""
    told, at = {}, 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, named = fields[1], fields[6], fields[11]
        name = archive[at + HEADER_BYTES : at + HEADER_BYTES + named - 1].decode()
        at += -(-(HEADER_BYTES + named) // 4) * 4
        content = archive[at : at + size]
        at += -(-size // 4) * 4
        if name == "TRAILER!!!":
            assert at == len(archive)
            return told
        told[name] = (mode, content)


NAMES = st.text("abcxyz", min_size=1, max_size=6)


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, st.binary(max_size=20), max_size=4), max_size=4))
def test_everything_below_a_folder_is_in_the_archive_and_folders_come_first(tmp_path_factory, tree):
    root = tmp_path_factory.mktemp("tree")
    for folder, files in tree.items():
        (root / folder).mkdir()
        for name, content in files.items():
            (root / folder / name).write_bytes(content)
    told = entries(archived(root))
    wanted = set(tree) | {f"{folder}/{name}" for folder, files in tree.items() for name in files}
    assert set(told) == wanted
    order = list(told)
    for name, (_, content) in told.items():
        folder, _, file = name.partition("/")
        if file:
            assert content == tree[folder][file]
            assert order.index(folder) < order.index(name)


def test_neither_owner_nor_time_nor_order_of_making_is_in_the_archive(tmp_path):
    for name, files, umask, time_s in (("one", "ab", 0o022, 10**9), ("two", "ba", 0o077, 2 * 10**9)):
        before = os.umask(umask)
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text(file)
            os.utime(tmp_path / name / file, (time_s, time_s))
        (tmp_path / name / "link").symlink_to("a")
        os.umask(before)
    assert archived(tmp_path / "one") == archived(tmp_path / "two")


def test_rights_to_execute_and_links_are_in_the_archive(tmp_path):
    (tmp_path / "program").write_text("x")
    (tmp_path / "program").chmod(0o700)
    (tmp_path / "link").symlink_to("program")
    told = entries(archived(tmp_path))
    assert told["program"] == (0o100755, b"x")
    assert told["link"] == (0o120777, b"program")


def test_what_is_neither_file_nor_folder_nor_link_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is neither a folder"):
        archived(tmp_path)


def put(folder, **properties):
    """An image of these properties in ``folder``."""
    folder.mkdir(parents=True)
    (folder / "linux").write_bytes(b"a kernel")
    (folder / "root.cpio").write_bytes(b"a root")
    kernel_sha256, root_sha256 = sha256_of(folder / "linux"), sha256_of(folder / "root.cpio")
    kernel = {
        "folder": "/somebody/elses", "release": properties.pop("release", "7.0"), "package": "p",
        "package_version": "1", "recipe": "r", "config_sha256": "0", "kernel_sha256": kernel_sha256,
        "seccomp": True, "clock_address": 5, "build_s": 1.0,
    }  # fmt: skip
    described = {
        "sha256": image_sha256(kernel_sha256, root_sha256), "recipe": image_recipe(), "kernel": kernel,
        "root_sha256": root_sha256, "tools": {"iperf3": "iperf 3.22"}, "packages": {"iperf3": "3.22-1"},
        "sources": ["iperf3 3.22-1"], "compiler": "gcc",
    }  # fmt: skip
    (folder / "image.json").write_text(json.dumps(described | properties), encoding="utf-8")
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(found, "WHEEL", "no_such_wheel")
    return tmp_path / "fabbbr" / "images"


@pytest.fixture
def wheel(tmp_path, cache, monkeypatch):
    """The folder where an installed wheel has its image."""
    monkeypatch.setattr(found, "WHEEL", "made_up_guest")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path / "site" / "made_up_guest"
    sys.modules.pop("made_up_guest", None)


def test_an_image_is_found_where_it_is_and_not_where_it_was_copied_from(cache):
    folder = put(cache / "copied")
    image = found_image()
    assert image is not None
    assert (image.kernel.binary, image.root) == (folder / "linux", folder / "root.cpio")


def test_the_newest_kernel_of_todays_recipe_is_taken(cache):
    put(cache / "old", release="7.9.1")
    put(cache / "new", release="7.10.0")
    put(cache / "foreign", release="8.0", recipe="another")
    assert found_image().kernel.release == "7.10.0"


def test_an_installed_wheel_comes_before_the_cache(cache, wheel):
    put(cache / "newer", release="9.0")
    put(wheel)
    assert found_image().folder == wheel


def test_the_wheel_of_another_fabbbr_is_not_taken_and_is_named(cache, wheel):
    put(wheel, recipe="another")
    assert found_image() is None
    assert foreign_wheel().folder == wheel
    with pytest.raises(EnvironmentUnfitError, match="fabbbr-guest is of another version than fabbbr"):
        GuestBackend()


def test_on_another_processor_nothing_is_advised_that_cannot_be_had_there(cache, monkeypatch):
    """It was told to install a wheel that there is none of, or to build what cannot be built."""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(EnvironmentUnfitError, match=r"this machine is aarch64: .* --backend mininet$"):
        GuestBackend()


@pytest.mark.parametrize("missing", ["linux", "root.cpio", "image.json"])
def test_an_image_that_is_not_whole_is_none(cache, missing):
    (put(cache / "torn") / missing).unlink()
    assert found_image() is None
    with pytest.raises(
        EnvironmentUnfitError, match=r"not built yet; install it: .* build it once with: fabbbr guest build"
    ):
        GuestBackend()


@pytest.mark.parametrize("key", ["sha256", "recipe", "kernel", "root_sha256", "tools", "packages", "sources"])
@pytest.mark.parametrize("value", [5, "x", None, [], {"a": 1}])
def test_a_description_that_is_none_is_no_image_and_no_traceback(cache, key, value):
    put(cache / "odd", **{key: value})
    image = found_image()
    assert image is None or key != "kernel"


@pytest.mark.parametrize("file", ["linux", "root.cpio"])
def test_an_image_that_was_altered_is_refused_with_the_file_and_the_remedy(cache, file):
    folder = put(cache / "altered")
    require_unaltered(found_image())
    (folder / file).write_bytes(b"another")
    with pytest.raises(
        EnvironmentUnfitError, match=rf"{file} is not the one that was built .* build it anew"
    ):
        GuestBackend()


def test_an_image_that_cannot_be_read_is_refused_with_the_file(cache):
    put(cache / "gone")
    image = found_image()
    image.kernel.binary.unlink()
    with pytest.raises(EnvironmentUnfitError, match=r"linux: No such file or directory; .* build it anew"):
        require_unaltered(image)


@pytest.mark.parametrize("name", ["with a blank", "with:colon"])
def test_a_root_is_not_made_below_a_path_that_a_loader_takes_for_two(tmp_path, monkeypatch, name):
    """No library was found in what the loader printed, and the root had none; its programs crashed."""
    made = []

    class Made:
        def __init__(self, _packages, work):
            made.append(work)

        lay_out = copy_licences = write = contributors = versions = lambda *_: None

    monkeypatch.setattr(build, "Root", Made)
    monkeypatch.setattr(build, "fetch", lambda _: ((), ""))
    for folder in (tmp_path / name, tmp_path / "temporary"):
        (folder / "staged").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    build.build_root(tmp_path / name / "staged")
    build.build_root(tmp_path / "temporary" / "staged")
    assert [work.parent for work in made] == [tmp_path / "temporary"] * 2
    assert not any(work.exists() for work in made)


def test_one_digest_stands_for_kernel_and_root():
    digests = {image_sha256(kernel, root) for kernel in "ab" for root in "ab"}
    assert len(digests) == 4


def test_what_unpacks_archives_reads_ours(tmp_path):
    """Where the system has a cpio of its own."""
    (tmp_path / "tree" / "folder").mkdir(parents=True)
    (tmp_path / "tree" / "folder" / "file").write_text("content")
    (tmp_path / "out").mkdir()
    try:
        subprocess.run(
            ("cpio", "-i", "-d", "--quiet"),
            cwd=tmp_path / "out",
            input=archived(tmp_path / "tree"),
            check=True,
        )
    except FileNotFoundError:
        pytest.skip("this machine has no cpio")
    assert (tmp_path / "out" / "folder" / "file").read_text() == "content"


def test_the_first_process_of_a_guest_does_nothing_on_another_machine():
    """It mounted empty file systems over /run and /tmp of whoever imported it."""
    before = Path("/proc/self/mounts").read_text(encoding="utf-8")
    importlib.import_module("fabbbr.backends.guest.image.init")
    done = subprocess.run(
        (sys.executable, INIT),
        env=os.environ | {"FABBBR_MOUNTS": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "this is the first process of a guest, and this machine is none\n",
    )
    assert Path("/proc/self/mounts").read_text(encoding="utf-8") == before
