"""The source of a kernel of one's own: a tree, a commit of it, a tarball, patches."""

import hashlib
import subprocess
import tarfile

import pytest

from fabbbr.backends.guest.kernel import given as given_module
from fabbbr.backends.guest.kernel.given import Given, lay_out
from fabbbr.backends.guest.kernel.source import SourcePackage
from fabbbr.errors import KernelBuildError

CUBIC = "net/ipv4/tcp_cubic.c"
PATCH = f"""\
--- a/{CUBIC}
+++ b/{CUBIC}
@@ -1 +1 @@
-int beta = 717;
+int beta = 512;
"""


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def tree(tmp_path):
    files = {"Kbuild": "", "Makefile": "VERSION = 6\n", "arch/um/Makefile": "", CUBIC: "int beta = 717;\n"}
    return write(tmp_path / "linux-mine", files)


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def git(tree, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
    argv = ("git", "-C", str(tree), *identity, *words)
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tree):
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "one")
    git(tree, "tag", "v6.12")
    return tree


def beta(laid_out):
    return (laid_out.tree / CUBIC).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "called"),
    [
        ("6.1", "6.1"),
        ("linux-source-6.12", "6.12"),
        ("trees/linux-mine", "linux-mine"),
        ("linux-6.6.tar.xz", "6.6"),
        ("./net-next.tgz", "net-next"),
    ],
)
def test_it_is_called_as_its_source(source, called):
    assert Given(source=source).called == called


def test_a_name_may_be_given_and_must_be_one():
    assert Given(source="6.1", name="patched").called == "patched"
    for name in ("a/b", "", "default"):
        with pytest.raises(KernelBuildError, match="can be no name of your kernel; give it one: --name"):
            _ = Given(source="6.1", name=name).called


def test_a_folder_is_copied_without_what_was_built_in_it(tree, work):
    write(tree, {"net/ipv4/tcp_cubic.o": "old", ".config": "CONFIG_X=y\n", "include/generated/a.h": ""})
    laid_out = lay_out(Given(source=str(tree)), work)
    assert (laid_out.package, laid_out.version, laid_out.patches) == ("linux-mine", "as it was", ())
    assert beta(laid_out) == "int beta = 717;\n"
    for left in ("net/ipv4/tcp_cubic.o", ".config", "include/generated"):
        assert not (laid_out.tree / left).exists()


def test_what_no_guest_can_have_is_left_out_and_nothing_that_is_called_alike(tree, work):
    write(
        tree, {"sound/core.c": "", "include/sound/core.h": "", "arch/arm/a.c": "", "tools/arch/arm/a.h": ""}
    )
    copy = lay_out(Given(source=str(tree)), work).tree
    assert not (copy / "sound/core.c").exists()
    assert not (copy / "arch/arm/a.c").exists()
    assert (copy / "include/sound/core.h").exists()
    assert (copy / "tools/arch/arm/a.h").exists()


def test_a_patch_is_laid_on_the_copy_and_named_with_its_digest(tree, work, tmp_path):
    patch = write(tmp_path, {"beta.patch": PATCH}) / "beta.patch"
    laid_out = lay_out(Given(source=str(tree), patches=(patch,)), work)
    assert beta(laid_out) == "int beta = 512;\n"
    assert laid_out.patches == (f"beta.patch {hashlib.sha256(PATCH.encode()).hexdigest()[:16]}",)
    assert (tree / CUBIC).read_text(encoding="utf-8") == "int beta = 717;\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PATCH.replace("717", "600"), r"beta\.patch does not fit this source: .*FAILED"),
        (None, "no such file"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(tree, work, tmp_path, text, said):
    if text is not None:
        write(tmp_path, {"beta.patch": text})
    with pytest.raises(KernelBuildError, match=said):
        lay_out(Given(source=str(tree), patches=(tmp_path / "beta.patch",)), work)


def test_a_git_tree_is_taken_as_it_is_with_what_was_changed(repository, work):
    write(repository, {CUBIC: "int beta = 900;\n", "untracked.c": ""})
    (repository / "Makefile").unlink()
    with pytest.raises(KernelBuildError, match="is no kernel source: it has no Makefile"):
        lay_out(Given(source=str(repository)), work)


def test_what_a_git_tree_is_has_its_tag_its_commit_and_its_changes(repository, work):
    sha = git(repository, "rev-parse", "HEAD")[:12]
    clean = lay_out(Given(source=str(repository)), work)
    assert clean.version == f"v6.12 ({sha})"
    write(repository, {CUBIC: "int beta = 900;\n", "untracked.c": ""})
    (work / "second").mkdir()
    changed = lay_out(Given(source=str(repository)), work / "second")
    assert changed.version.startswith(f"v6.12 ({sha}), changed (")
    assert beta(changed) == "int beta = 900;\n"
    assert not (changed.tree / "untracked.c").exists()


def test_a_commit_is_taken_whatever_is_checked_out(repository, work):
    write(repository, {CUBIC: "int beta = 900;\n"})
    git(repository, "commit", "-q", "-a", "-m", "two")
    laid_out = lay_out(Given(source=str(repository), commit="HEAD~1"), work)
    assert beta(laid_out) == "int beta = 717;\n"
    assert laid_out.version.startswith("v6.12 (")
    (work / "second").mkdir()
    with pytest.raises(KernelBuildError, match=r"--commit v9: .* is no git tree that has it"):
        lay_out(Given(source=str(repository), commit="v9"), work / "second")


def test_a_folder_in_a_repository_of_something_else_is_no_git_tree(repository, work):
    inner = write(repository / "copy", {"Kbuild": "", "Makefile": "", "arch/um/Makefile": ""})
    assert lay_out(Given(source=str(inner)), work).version == "as it was"
    (work / "second").mkdir()
    with pytest.raises(KernelBuildError, match="is no git tree that has it"):
        lay_out(Given(source=str(inner), commit="HEAD"), work / "second")


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tar.xz"])
def test_a_tarball_is_unpacked_and_named_with_its_digest(tree, work, tmp_path, suffix):
    file = tmp_path / f"linux-6.6.{suffix}"
    with tarfile.open(file, f"w:{suffix[4:]}") as archive:
        archive.add(tree, "linux-6.6")
    laid_out = lay_out(Given(source=str(file)), work)
    assert beta(laid_out) == "int beta = 717;\n"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    assert (laid_out.package, laid_out.version) == (file.name, f"sha256 {digest}")


def test_what_is_no_source_is_refused(work, tmp_path):
    file = write(tmp_path, {"notes.txt": "no archive"}) / "notes.txt"
    for given, said in (
        (Given(source=str(tmp_path / "nowhere")), "no such folder or file"),
        (Given(source=str(file)), "tar failed"),
        (Given(source=str(file), commit="v6"), "is a file; name a git tree"),
        (Given(source="6.1", commit="v6"), "6.1 is a package; name a git tree"),
    ):
        with pytest.raises(KernelBuildError, match=said):
            lay_out(given, work)


def test_a_series_is_a_package(monkeypatch, work, tree):
    package = SourcePackage(name="linux-source-6.1", version="6.1.190-1", apt_options=())
    monkeypatch.setattr(given_module, "of_series", lambda series, folder: {"6.1": package}[series])
    monkeypatch.setattr(given_module, "unpack", lambda *_: tree)
    laid_out = lay_out(Given(source="6.1"), work)
    assert (laid_out.package, laid_out.version) == ("linux-source-6.1", "6.1.190-1")
