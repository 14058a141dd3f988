"""The sources of a congestion control that a user brings: read once, known by one digest.

Of a kernel module: a folder with a Kbuild or a Makefile, a folder with one ``.c`` file, or that file alone.
Of a BPF program: ``NAME.bpf.c``, with what it includes from beside it, or a folder with one such file. What
was built before, and whatever else lies about in a folder, is no part of it. Nothing of it runs here.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from fabbbr import files
from fabbbr.errors import SpecError
from fabbbr.foreign import listed

MOST_BYTES = 8_000_000
MOST_FILES = 500
RECIPES = ("Kbuild", "Makefile")
"""Either tells the kernel's make what to build of a folder; the first goes before the second."""
PROGRAM = ".bpf.c"
"""How the name of a BPF program ends."""
OF_A_KERNEL = "vmlinux.h"
"""A BPF program includes it, and every kernel has its own: no part of the sources."""
_SUFFIXES = (".c", ".h", ".S", ".inc", ".mk")
_BUILDS = re.compile(rb"\bobj-")
"""In a recipe: it is of a kernel module."""
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"", re.MULTILINE)
_BUILT = re.compile(r".*\.mod\.c")
_HIDDEN = re.compile(r"\..*")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_OPERATIONS = re.compile(r"struct\s+tcp_congestion_ops\s+\w+[^=;{}]*=\s*\{")
_NAME = re.compile(r"\.\s*name\s*=\s*\"([^\"\n]*)\"")
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True, kw_only=True)
class Named:
    """A name under which the module registers a congestion control, and where its source says so."""

    name: str
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What a module or a BPF program is made of."""

    place: Path
    """The folder, or the one file, as the user named it."""
    contents: dict[str, bytes]
    """Path below the folder → content, in order."""

    @cached_property
    def canonical(self) -> bytes:
        """All of it as one string of bytes: names and lengths part the files."""
        return b"".join(
            f"{name}\0{len(content)}\0".encode() + content for name, content in self.contents.items()
        )

    @cached_property
    def sha256(self) -> str:
        """What knows it."""
        return hashlib.sha256(self.canonical).hexdigest()

    @cached_property
    def program(self) -> str | None:
        """The file that is a BPF program; None for the sources of a kernel module."""
        return _program_in(self.contents)

    @cached_property
    def names(self) -> tuple[Named, ...]:
        """What its sources register, as far as it is written out in them."""
        return tuple(
            named for name, content in self.contents.items() if name.endswith(".c")
            for named in _registered(name, content.decode("utf-8", "replace"))
        )  # fmt: skip

    def line_of(self, text: str) -> tuple[str, int] | None:
        """File and line of the first use of a word in its code, where there is one."""
        word = re.compile(rf"\b{re.escape(text)}\b")
        for name, content in self.contents.items():
            found = word.search(_without_comments(content.decode("utf-8", "replace")))
            if found is not None and name.endswith((".c", ".h")):
                return name, found.string.count("\n", 0, found.start()) + 1
        return None

    def place_of(self, file: str, line: int) -> str:
        """A line of a file that a compiler names: of the module's own by their place, of others as it is."""
        names = [name for name in self.contents if file == name or file.endswith(f"/{name}")]
        return self.shown(max(names, key=len), line) if names else f"{file}:{line}"

    def shown(self, name: str, line: int | None = None) -> str:
        """A file of it as a message names it."""
        folder = self.place.parent if self.place.name in self.contents else self.place
        return f"{folder / name}:{line}" if line else str(folder / name)


def read(path: Path) -> Sources:
    """The sources at ``path``; raise SpecError when there are none, or more than a module has."""
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}; name a folder or a .c file"
        raise SpecError(message) from error
    if not exists:
        message = f"no module at {path}: name a folder with a Kbuild or a Makefile, or one .c or .bpf.c file"
        raise SpecError(message)
    contents = _of_folder(path) if is_folder else _of_file(path)
    return Sources(place=path, contents=contents)


def _of_file(path: Path) -> dict[str, bytes]:
    if path.suffix != ".c":
        message = f"{path}: no C source; a module is a folder with a Kbuild or a Makefile, or one .c file"
        raise SpecError(message)
    if path.name.endswith(PROGRAM):
        return _with_what_it_includes(path)
    return {path.name: files.read_named(path, most=MOST_BYTES, said="the most of a module's sources")}


def _with_what_it_includes(path: Path) -> dict[str, bytes]:
    """A program and, in turn, what of its folder stands in quotes after ``#include``."""
    contents: dict[str, bytes] = {}
    left, names = MOST_BYTES, [path.name]
    for name in names:
        said = f"what is left of {MOST_BYTES} for all sources of a program"
        contents[name] = files.read_named(path.parent / name, most=left, said=said)
        left -= len(contents[name])
        for included in _INCLUDED.findall(contents[name].decode("utf-8", "replace")):
            beside = (PurePosixPath(name).parent / included).as_posix()
            is_there = ".." not in beside.split("/") and (path.parent / beside).is_file()
            if is_there and beside not in names and PurePosixPath(beside).name != OF_A_KERNEL:
                names.append(beside)
    return {name: contents[name] for name in sorted(contents)}


def _of_folder(path: Path) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    left = MOST_BYTES
    for name in sorted(_source_names(path)):
        said = f"what is left of {MOST_BYTES} for all sources of a module"
        contents[name] = files.read_named(path / name, most=left, said=said)
        left -= len(contents[name])
        if len(contents) > MOST_FILES:
            message = f"{path}: more than {MOST_FILES} source files; name the folder of the module alone"
            raise SpecError(message)
    own = [name for name in contents if name.endswith(".c")]
    if not own:
        message = f"{path}: no .c file in it; name the folder that has the module's sources"
        raise SpecError(message)
    if _program_in(contents) is not None:
        return {name: content for name, content in contents.items() if Path(name).name != OF_A_KERNEL}
    if not any(recipe in contents for recipe in RECIPES) and len(own) > 1:
        message = (
            f"{path}: {len(own)} .c files ({listed(own, most=4)}) and no Kbuild or Makefile says what to "
            f"build of them; add a Kbuild with obj-m := {Path(own[0]).stem}.o, or name one of the files"
        )
        raise SpecError(message)
    return contents


def _source_names(path: Path) -> Iterator[str]:
    for folder, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not _HIDDEN.fullmatch(name))
        for name in names:
            is_source = name.endswith(_SUFFIXES) and not _BUILT.fullmatch(name)
            if not _HIDDEN.fullmatch(name) and (is_source or name in RECIPES):
                yield (Path(folder) / name).relative_to(path).as_posix()


def _program_in(contents: Mapping[str, bytes]) -> str | None:
    """The one BPF program of a folder in which no recipe builds a module."""
    programs = [name for name in contents if name.endswith(PROGRAM)]
    builds = any(_BUILDS.search(contents[recipe]) for recipe in RECIPES if recipe in contents)
    return programs[0] if len(programs) == 1 and not builds else None


def _registered(file: str, text: str) -> Iterator[Named]:
    code = _without_comments(text)
    for found in _OPERATIONS.finditer(code):
        for name in _NAME.finditer(code, found.end(), _closing(code, found.end())):
            yield Named(name=name[1], file=file, line=code.count("\n", 0, name.start()) + 1)


def _closing(code: str, start: int) -> int:
    """Where the brace that is open at ``start`` is closed."""
    depth = 1
    for brace in _BRACE.finditer(code, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(code)


def _without_comments(text: str) -> str:
    """The same lines."""
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
