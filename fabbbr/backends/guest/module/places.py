"""Where in its sources a module broke: from an address in the guest's kernel to a file and a line."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fabbbr.backends.guest.module.elf import Section, sections

_FAULT = re.compile(
    r"(?P<said>Kernel mode (?:signal \d+|fault at addr 0x(?P<addr>[0-9a-f]+))[^\n]*?ip 0x(?P<ip>[0-9a-f]+))"
)
_BUG = re.compile(r"(?P<said>(?:kernel BUG at|BUG:|Kernel panic - not syncing:)[^\n]*)")
_RIP = re.compile(r"(?:RIP|ip)[: ]+(?:[0-9a-f]+:)?\[?<?(?:0x)?(?P<ip>[0-9a-f]{6,16})")


_ATTACH, _DETACH, _GET_REGISTERS = 16, 17, 12
_REGISTERS, _INSTRUCTION, _STACK = 27, 16, 19
"""Of x86-64's struct user_regs_struct: how many words, and which."""
_STACK_BYTES = 8192


@dataclass(frozen=True, kw_only=True)
class Oops:
    """What the kernel said when it broke."""

    said: str
    instruction: int | None
    """Where it was."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A function, and where it is in the sources: file below the module's folder, and line."""

    function: str
    line: tuple[str, int]


def oops_in(console: str) -> Oops | None:
    """The first oops of a guest's console."""
    found = _FAULT.search(console) or _BUG.search(console)
    if found is None:
        return None
    ip = found.groupdict().get("ip")
    if ip is None:
        rip = _RIP.search(console)
        ip = rip["ip"] if rip is not None else None
    return Oops(said=found["said"], instruction=int(ip, 16) if ip is not None else None)


def loaded_at(work: Path) -> dict[str, int]:
    """Digest of the sources → where the code of the module begins, by what the agent read back."""
    return {one["source_sha256"]: int(one["address"], 16) for one in _read_back(work) if one["address"]}


def parameters_of(work: Path) -> frozenset[str]:
    """The parameters of all modules that could be read back."""
    return frozenset(name for one in _read_back(work) for name in one["parameters"])


def _read_back(work: Path) -> list[dict[str, Any]]:
    """What the agent said of each module; nothing while it has not."""
    try:
        told = json.loads((work / "raw" / "readback.json").read_text(encoding="utf-8"))
        answers = [answer["stdout"] for name, answer in told.items() if name.startswith("module.")]
        return [json.loads(answer) for answer in answers]
    except (OSError, ValueError):
        return []


def where_is(pid: int) -> tuple[int, ...]:
    """Where a running guest's kernel is, innermost first: its instruction, and the words of its stack.

    Some of those are addresses of callers. Stops it for that moment; empty when we may not look.
    """
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    if library.ptrace(_ATTACH, pid, None, None) != 0:
        return ()
    try:
        os.waitpid(pid, 0)
        registers = (ctypes.c_ulonglong * _REGISTERS)()
        if library.ptrace(_GET_REGISTERS, pid, None, ctypes.addressof(registers)) != 0:
            return ()
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(registers[_STACK])
            stack = memory.read(_STACK_BYTES)
        words = memoryview(stack[: len(stack) // 8 * 8]).cast("Q")
        return (registers[_INSTRUCTION], *words)
    except OSError:
        return ()
    finally:
        library.ptrace(_DETACH, pid, None, None)


class Places:
    """The code of one module, by the file that has its lines."""

    def __init__(self, debug_file: Path) -> None:
        self._file = debug_file

    @cached_property
    def _code(self) -> list[tuple[int, Section]]:
        """Offset from where it is loaded, and section: what is executed lies in the file's order."""
        laid, offset = [], 0
        for section in sections(self._file.read_bytes()).values():
            if section.executable and not section.name.startswith(".init"):
                offset = -(-offset // section.alignment) * section.alignment
                laid.append((offset, section))
                offset += len(section.content)
        return laid

    def place(self, instruction: int | None, address: int) -> Place | None:
        """None for what is not in the module."""
        for offset, section in self._code:
            inside = -1 if instruction is None else instruction - address - offset
            if 0 <= inside < len(section.content):
                return self._told(section.name, inside)
        return None

    def _told(self, section: str, offset: int) -> Place | None:
        argv = ("addr2line", "-f", "-e", str(self._file), "-j", section, hex(offset))
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        function, _, place = done.stdout.strip().partition("\n")
        file, _, line = place.partition(" ")[0].rpartition(":")
        return Place(function=function, line=(file, int(line))) if line.isdigit() else None
