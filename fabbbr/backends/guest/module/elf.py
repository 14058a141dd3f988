"""What is read of ELF files of 64 bits: a kernel that was linked to its place, and its modules. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from fabbbr.errors import KernelBuildError

_SECTION = struct.Struct("<IIQQQQIIQQ")
_NO_BITS = 8
_RUNS = 0x6
"""Flags of what is in memory and executed."""
_EXPORT = struct.Struct("<QQQ")
_GPL_ONLY = 1


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the file by its name."""

    name: str
    address: int
    content: bytes
    executable: bool = False
    alignment: int = 1


@dataclass(frozen=True, kw_only=True)
class Export:
    """A symbol that a kernel offers to modules."""

    name: str
    gpl_only: bool
    name_space: str


def sections(data: bytes) -> dict[str, Section]:
    """Name → section, of those with bytes in the file; raise KernelBuildError for what is no ELF file."""
    if data[:6] != b"\x7fELF\x02\x01":
        message = "no ELF file of 64 bits: the guest's kernel and its modules are; build the image anew"
        raise KernelBuildError(message)
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    headers = [_SECTION.unpack_from(data, start + index * size) for index in range(count)]
    names = headers[names_at][4]
    found = (
        Section(name=_text(data, names + header[0]), address=header[3],
                content=data[header[4] : header[4] + header[5]],
                executable=header[2] & _RUNS == _RUNS, alignment=max(header[8], 1))
        for header in headers if header[1] != _NO_BITS
    )  # fmt: skip
    return {section.name: section for section in found}


def exports(kernel: bytes) -> Iterator[Export]:
    """What a linked kernel exports, in the order of its table.

    An entry is the addresses of the symbol, of its name and of its name space (``struct kernel_symbol``). Who
    may use it stands in ``__kflagstab``, a byte each; before Linux 7.0 in which of two tables it is.
    """
    parts = sections(kernel)
    tables = [parts[name] for name in ("__ksymtab", "__ksymtab_gpl") if name in parts]
    if not tables:
        message = "the guest's kernel exports nothing: it was built without modules; build the image anew"
        raise KernelBuildError(message)
    flags = parts.get("__kflagstab")
    for table in tables:
        for index, (_, name, space) in enumerate(_EXPORT.iter_unpack(table.content)):
            gpl_only = flags.content[index] & _GPL_ONLY if flags else table.name.endswith("_gpl")
            yield Export(
                name=_text_at(parts, name),
                gpl_only=bool(gpl_only),
                name_space=_text_at(parts, space) if space else "",
            )


def symbol_versions(kernel: bytes) -> str:
    """``Module.symvers`` of a kernel without CONFIG_MODVERSIONS: by it modpost knows what is missing."""
    lines = (
        f"0x00000000\t{one.name}\tvmlinux\tEXPORT_SYMBOL{'_GPL' if one.gpl_only else ''}\t{one.name_space}\n"
        for one in exports(kernel)
    )
    return "".join(lines)


def module_info(module: bytes) -> list[tuple[str, str]]:
    """The pairs of ``.modinfo``, as ``("parmtype", "beta:int")``."""
    section = sections(module).get(".modinfo")
    texts = section.content.split(b"\0") if section is not None else []
    pairs = (text.decode("utf-8", "replace").partition("=") for text in texts if text)
    return [(key, value) for key, _, value in pairs]


def _text_at(parts: dict[str, Section], address: int) -> str:
    for section in parts.values():
        offset = address - section.address
        if section.address and 0 <= offset < len(section.content):
            return _text(section.content, offset)
    message = "the guest's kernel names an exported symbol outside of its sections; build the image anew"
    raise KernelBuildError(message)


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode("utf-8", "replace")
