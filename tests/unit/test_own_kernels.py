"""Kernels of one's own in the cache, and how an experiment's name finds one."""

import json
from dataclasses import asdict, replace

import pytest

from fabbbr.backends.guest.image.found import GuestImage, image_sha256, require_unaltered
from fabbbr.backends.guest.kernel import own
from fabbbr.backends.guest.kernel.build import GuestKernel, recipe_hash
from fabbbr.cli import main
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.files import sha256_of

OF_IMAGE = GuestKernel(
    folder="/nowhere", release="7.3.4", package="linux-source-7.3", package_version="7.3.4-1",
    recipe="r", config_sha256="c", kernel_sha256="k", seccomp=True, clock_address=1, build_s=1.0,
)  # fmt: skip


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Put a kernel of this name into an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def one(name, release, **properties):
        folder = own.own_kernels_folder() / name
        folder.mkdir(parents=True)
        (folder / "linux").write_bytes(release.encode())
        kernel = replace(
            OF_IMAGE, folder="/somebody/elses", name=name, release=release, recipe=recipe_hash(),
            package=f"linux-source-{name}", kernel_sha256=sha256_of(folder / "linux"),
        )  # fmt: skip
        described = asdict(replace(kernel, **properties))
        (folder / "kernel.json").write_text(json.dumps(described), encoding="utf-8")
        return folder

    return one


def test_they_are_listed_by_release_and_found_where_they_are(put):
    for name, release in (("mine", "6.12.3"), ("6.1", "6.1.190"), ("5.10", "5.10.250")):
        put(name, release)
    assert list(own.own_kernels()) == ["5.10", "6.1", "mine"]
    found = own.kernel_named("mine", OF_IMAGE)
    assert (found.release, found.binary.read_bytes()) == ("6.12.3", b"6.12.3")


def test_default_and_the_series_of_the_image_are_the_images_own(put):
    assert own.kernel_named("default", OF_IMAGE) is OF_IMAGE
    assert own.kernel_named("7.3", OF_IMAGE) is OF_IMAGE
    put("7.3", "7.3.9")
    assert own.kernel_named("7.3", OF_IMAGE).release == "7.3.9"


def test_one_that_is_not_there_is_refused_with_the_command_that_builds_it(put):
    put("6.12", "6.12.3")
    with pytest.raises(EnvironmentUnfitError) as caught:
        own.kernel_named("6.1", OF_IMAGE)
    assert str(caught.value) == (
        "no kernel 6.1 is built (there are: default, 6.12); build it once, as with: "
        "fabbbr kernel build --source 6.1"
    )


def test_one_that_was_a_tree_is_refused_with_a_tree_to_name(put):
    with pytest.raises(
        EnvironmentUnfitError, match=r"as with: fabbbr kernel build --source TREE --name linux$"
    ):
        own.kernel_named("linux", OF_IMAGE)


@pytest.mark.parametrize(
    ("name", "kernels", "built_of"),
    [
        ("6.1", {}, "6.1"),
        ("6.1", {"6.1": {}}, None),
        ("6.1", {"6.1": {"recipe": "older"}}, "linux-source-6.1"),
        ("mine", {"mine": {"recipe": "older", "package": "linux-source-6.1"}}, "linux-source-6.1"),
        ("mine", {"mine": {"recipe": "older", "package": "linux-source-6.1", "patches": ("p 1",)}}, None),
        ("mine", {"mine": {"recipe": "older", "package": "linux"}}, None),
        ("mine", {}, None),
        ("7.3", {}, None),
        ("default", {}, None),
    ],
)
def test_what_would_build_a_kernel_is_known_where_it_is_the_distributions(put, name, kernels, built_of):
    for called, properties in kernels.items():
        put(called, "6.1.190", **properties)
    given = own.lacking(name, OF_IMAGE)
    assert (given and (given.source, given.called)) == (built_of and (built_of, name))


def test_one_of_another_recipe_is_refused(put):
    put("6.1", "6.1.190", recipe="older")
    with pytest.raises(EnvironmentUnfitError, match=r"by another fabbbr; build it anew.*--name 6\.1"):
        own.kernel_named("6.1", OF_IMAGE)


def test_one_is_removed_by_its_name(put):
    folder = put("6.1", "6.1.190")
    own.remove("6.1")
    assert not folder.exists()
    with pytest.raises(EnvironmentUnfitError, match=r"no kernel 6\.1 is built \(there are: none\)"):
        own.remove("6.1")


def test_an_image_with_another_kernel_has_its_root_and_a_digest_of_both(put, tmp_path):
    (tmp_path / "root.cpio").write_bytes(b"root")
    image = GuestImage(
        sha256="i", recipe="r", kernel=replace(OF_IMAGE, folder=str(tmp_path)), compiler="gcc",
        root_sha256=sha256_of(tmp_path / "root.cpio"), tools={}, packages={}, sources=[],
    )  # fmt: skip
    put("6.1", "6.1.190")
    other = image.with_kernel(own.kernel_named("6.1", image.kernel))
    assert other.root == tmp_path / "root.cpio"
    assert other.sha256 == image_sha256(other.kernel.kernel_sha256, image.root_sha256)
    require_unaltered(other)
    other.kernel.binary.write_bytes(b"altered")
    with pytest.raises(EnvironmentUnfitError, match=r"build it anew: fabbbr kernel build --name 6\.1"):
        require_unaltered(other)


def test_one_that_is_there_is_left_as_it_is_only_where_that_is_asked(put, capsys, monkeypatch):
    put("older", "6.1.190")
    built = []

    def build(given, *_, **__):
        built.append(given.called)
        return own.own_kernels()["older"]

    monkeypatch.setattr(own, "build_own", build)
    words = ["kernel", "build", "--source", "6.1", "--name", "older", "--json"]
    assert main([*words, "--if-missing"]) == 0
    assert json.loads(capsys.readouterr().out)["release"] == "6.1.190"
    assert not built
    assert main(words) == 0
    assert built == ["older"]
    own.remove("older")
    put("older", "6.1.190", recipe="another")
    assert main([*words, "--if-missing"]) == 0
    assert built == ["older", "older"]


def test_the_list_says_what_each_was_built_of_and_which_is_stale(put, capsys, monkeypatch):
    monkeypatch.setattr("fabbbr.commands.kernel.found_image", lambda: None)
    put("6.1", "6.1.190", patches=("fix.patch 1234",))
    put("5.10", "5.10.250", recipe="another")
    assert main(["kernel", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["release"]) for one in told] == [("5.10", "5.10.250"), ("6.1", "6.1.190")]
    assert main(["kernel", "list"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "fix.patch 1234" in text
    assert text.count("anew") == 1
