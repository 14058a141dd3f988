"""The source of a kernel that the user names: a distribution's series, a tree, a commit of it, a tarball."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabbbr.backends.guest.kernel.source import LEFT_OUT, of_series, unpack
from fabbbr.errors import KernelBuildError
from fabbbr.files import sha256_of
from fabbbr.kernels import OF_IMAGE, kernel_called

_SERIES = re.compile(r"(?:linux-source-)?(\d+\.\d+)")
_ROOM = "linux"
_IN_BUILT_TREES = ("*.o", "*.a", "*.ko", "*.cmd", ".config", "include/generated", "include/config")
_A_KERNEL_HAS = ("Kbuild", "Makefile", "arch/um/Makefile")
_LIMIT_S = 900


@dataclass(frozen=True, kw_only=True)
class Given:
    """What the user asks to build."""

    source: str
    """As given: ``6.1``, a folder, or a tarball."""
    commit: str | None = None
    patches: tuple[Path, ...] = ()
    name: str | None = None
    """None: as the source is called."""

    @property
    def called(self) -> str:
        """The name that experiments use; raise KernelBuildError where the source gives none."""
        series = _SERIES.fullmatch(self.source)
        last = Path(self.source).resolve().name
        own = series[1] if series is not None else re.sub(r"\.(tar(\.\w+)?|tgz)$", "", last)
        name = kernel_called(self.name if self.name is not None else own)
        if name in (None, OF_IMAGE):
            message = f"{self.name or own!r} can be no name of your kernel; give it one: --name 6.12-mine"
            raise KernelBuildError(message)
        return name


def is_series(source: str) -> bool:
    """Whether a source is a series of the distribution's: no file of that name is there."""
    return _SERIES.fullmatch(source) is not None and not Path(source).expanduser().exists()


@dataclass(frozen=True, kw_only=True)
class LaidOut:
    """A source that may be changed, and what it was."""

    tree: Path
    package: str
    version: str
    patches: tuple[str, ...]
    """Name and sha256 of each."""


def lay_out(given: Given, work: Path) -> LaidOut:
    """Copy the source into ``work`` and patch it; raise KernelBuildError naming what does not fit."""
    series = _SERIES.fullmatch(given.source)
    place = Path(given.source).expanduser()
    if series is not None and is_series(given.source):
        tree, package, version = _of_series(given, series[1], work)
    elif place.is_dir():
        tree, package, version = _of_folder(place, given.commit, work)
    elif place.is_file():
        tree, package, version = _of_tarball(place, given.commit, work)
    else:
        message = (
            f"{given.source}: no such folder or file; a source is a series of your distribution's (6.1), the "
            "folder of a kernel tree, or a tarball"
        )
        raise KernelBuildError(message)
    missing = next((name for name in _A_KERNEL_HAS if not (tree / name).exists()), None)
    if missing is not None:
        message = f"{given.source} is no kernel source: it has no {missing}"
        raise KernelBuildError(message)
    return LaidOut(tree=tree, package=package, version=version, patches=_patched(tree, given.patches))


def _of_series(given: Given, series: str, work: Path) -> tuple[Path, str, str]:
    if given.commit is not None:
        message = f"--commit {given.commit}: {given.source} is a package; name a git tree to take a commit of"
        raise KernelBuildError(message)
    package = of_series(series, work)
    return unpack(package, work), package.name, package.version


def _of_folder(place: Path, commit: str | None, work: Path) -> tuple[Path, str, str]:
    tree, name = work / _ROOM, place.resolve().name
    tree.mkdir()
    sha = _git(place, "rev-parse", "--verify", "--quiet", f"{commit or 'HEAD'}^{{commit}}")
    # A tree may lie in a repository of something else: then its root is not this folder.
    is_root = _git(place, "rev-parse", "--show-cdup") == ""
    if commit is not None:
        if sha is None or not is_root:
            message = (
                f"--commit {commit}: {place} is no git tree that has it; fetch it there, or name another"
            )
            raise KernelBuildError(message)
        _piped(("git", "-C", str(place), "archive", sha), tree)
        return tree, name, _described(place, sha)
    if sha is None or not is_root:
        _piped(("tar", "-C", str(place), *_excluded(_IN_BUILT_TREES), "-cf", "-", "."), tree)
        return tree, name, "as it was"
    listed = (_git(place, "ls-files", "-z") or "").encode(errors="surrogateescape")
    archive = ("tar", "-C", str(place), "--null", "-T", "-", "--ignore-failed-read", "-cf", "-")
    _piped(archive, tree, names=listed)
    return tree, name, f"{_described(place, sha)}{_changes(place)}"


def _changes(place: Path) -> str:
    """Said of what was changed since the commit."""
    changes = _git(place, "diff", "HEAD", "--binary")
    if not changes:
        return ""
    return f", changed ({hashlib.sha256(changes.encode(errors='surrogateescape')).hexdigest()[:16]})"


def _described(place: Path, sha: str) -> str:
    """As in ``v6.12 (adc218676eef)``."""
    tag = _git(place, "describe", "--tags", sha)
    return f"{tag} ({sha[:12]})" if tag else f"commit {sha[:12]}"


def _of_tarball(place: Path, commit: str | None, work: Path) -> tuple[Path, str, str]:
    if commit is not None:
        message = f"--commit {commit}: {place} is a file; name a git tree to take a commit of"
        raise KernelBuildError(message)
    room = work / _ROOM
    room.mkdir()
    _run(("tar", "-xf", str(place.resolve()), "-C", str(room)), work)
    found = list(room.iterdir())
    tree = found[0] if len(found) == 1 and found[0].is_dir() else room
    return tree, place.name, f"sha256 {sha256_of(place)[:16]}"


def _patched(tree: Path, patches: Sequence[Path]) -> tuple[str, ...]:
    for patch in patches:
        if not patch.is_file():
            message = f"--patch {patch}: no such file"
            raise KernelBuildError(message)
        argv = ("patch", "-p1", "--forward", "--batch", "--reject-file=-", "-i", str(patch.resolve()))
        _run(argv, tree, f"--patch {patch} does not fit this source")
    return tuple(f"{patch.name} {sha256_of(patch)[:16]}" for patch in patches)


def _excluded(patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"--exclude={pattern}" for pattern in patterns)


def _git(place: Path, *words: str) -> str | None:
    """What git says of the folder; None for what it refuses, and without git."""
    if shutil.which("git") is None:
        return None
    argv = ("git", "-C", str(place), *words)
    done = subprocess.run(argv, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=_LIMIT_S)
    return done.stdout.decode(errors="surrogateescape").rstrip("\n") if done.returncode == 0 else None


def _piped(archive: Sequence[str], to: Path, *, names: bytes = b"") -> None:
    """Unpack in ``to`` what ``archive`` writes; it is told ``names``."""
    anchored = (f"{top}{pattern}" for top in ("", "./") for pattern in LEFT_OUT)
    unpacking = ("tar", "-x", "-C", str(to), "--anchored", *_excluded(anchored))
    with subprocess.Popen(archive, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as packer:
        assert packer.stdin is not None
        assert packer.stdout is not None
        with subprocess.Popen(unpacking, stdin=packer.stdout) as unpacker:
            packer.stdout.close()
            packer.stdin.write(names)
            packer.stdin.close()
            statuses = unpacker.wait(_LIMIT_S), packer.wait(_LIMIT_S)
    if statuses[0] != 0 or packer.returncode not in (0, 1):
        message = f"{archive[0]} could not copy the source ({statuses}); is there room in {to}?"
        raise KernelBuildError(message)


def _run(argv: Sequence[str], cwd: Path, fails: str | None = None) -> None:
    done = subprocess.run(
        argv, cwd=cwd, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        said = " / ".join((done.stderr or done.stdout).strip().splitlines()[-2:])
        message = f"{fails or f'{argv[0]} failed'}: {said}"
        raise KernelBuildError(message)
