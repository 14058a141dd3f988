"""A folder as the archive that Linux takes as its first root (cpio, format "newc").

The bytes are a function of names, kinds, rights to execute and contents: owners, times and inode numbers are
made up, in the order of the names.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_TRAILER = "TRAILER!!!"
_FOLDER, _FILE, _PROGRAM, _LINK = 0o040755, 0o100644, 0o100755, 0o120777


def write_archive(folder: Path, to: BinaryIO) -> None:
    """Write everything below ``folder``: folders, files and symbolic links; anything else is a ValueError."""
    for number, path in enumerate(_sorted_below(folder), start=1):
        mode = _mode(path)
        content = (
            str(path.readlink()).encode() if mode == _LINK else b"" if mode == _FOLDER else path.read_bytes()
        )
        _write_entry(to, number, str(path.relative_to(folder)), mode, content)
    _write_entry(to, 0, _TRAILER, 0, b"")


def _sorted_below(folder: Path) -> Iterator[Path]:
    """A folder comes before what is in it."""
    return iter(sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).parts))


def _mode(path: Path) -> int:
    found = path.lstat().st_mode
    if stat.S_ISLNK(found):
        return _LINK
    if stat.S_ISDIR(found):
        return _FOLDER
    if not stat.S_ISREG(found):
        message = f"{path} is neither a folder, a file nor a symbolic link"
        raise ValueError(message)
    return _PROGRAM if found & stat.S_IXUSR else _FILE


def _write_entry(to: BinaryIO, number: int, name: str, mode: int, content: bytes) -> None:
    named = name.encode() + b"\0"
    links = 2 if mode == _FOLDER else 1
    # inode, mode, uid, gid, links, mtime, size, four device numbers, length of the name, checksum (none)
    fields = (number, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(named), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    to.write(_padded(header + named))
    to.write(_padded(content))


def _padded(block: bytes) -> bytes:
    return block + bytes(-len(block) % 4)
