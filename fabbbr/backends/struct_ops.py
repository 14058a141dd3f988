"""A BPF program of the user's own as it is, in a kernel that runs: registered there, and taken away at close.

It is compiled here, by clang, against the types of the kernel that is to run it; that machine needs BTF,
bpftool and root. What the verifier has against it is told with file and line. Beside the object lies a
record of what was registered, in the words of :mod:`fabbbr.agent.loading`: the agent finds the program
loaded, and reads it back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabbbr.backends.base import OwnControl
from fabbbr.backends.channel import Channel, ChannelError
from fabbbr.backends.loaded import (
    OFFERED,
    RECORDS,
    belongs_to_another,
    ground,
    records,
    require_free,
    run,
)
from fabbbr.backends.tools import search_path
from fabbbr.errors import EnvironmentUnfitError, ModuleUnfitError
from fabbbr.sources import OF_A_KERNEL, Sources

_CLANGS = ("clang", *(f"clang-{version}" for version in range(14, 30)))
_TYPES = f"""PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || exit 71
command -v bpftool >/dev/null || exit 72
[ -r /sys/kernel/btf/vmlinux ] || exit 73
cat {OFFERED} && exec bpftool btf dump file /sys/kernel/btf/vmlinux format c"""
_LACKS = {
    71: "is not run as root, and loading a BPF program needs it; use sudo",
    72: "has no bpftool; apt-get install bpftool (Ubuntu: linux-tools-$(uname -r))",
    73: "has a kernel without BTF (CONFIG_DEBUG_INFO_BTF); boot one with it, or leave --backend out: the "
    "guest compiles the program natively",
}
_REGISTER = f"""PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
mkdir -p {RECORDS} && cat >{RECORDS}/$1.o && exec bpftool struct_ops register {RECORDS}/$1.o"""
_UNREGISTER = f"""PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
digest=$1; shift
for id; do bpftool struct_ops unregister id "$id"; done
rm -f {RECORDS}/$digest.o {RECORDS}/$digest.json"""
_RECORD = f"cat >{RECORDS}/$1.json && cat {OFFERED}"
_REGISTERED = re.compile(r"Registered tcp_congestion_ops \S+ id (\d+)")
_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<said>.+)$", re.MULTILINE)
_LINE = re.compile(r"^; .* @ (?P<file>\S+):(?P<line>\d+)$", re.MULTILINE)
_VERDICT = re.compile(r"^(?!libbpf:)(?P<said>[^\n]+)\nprocessed \d+ insns", re.MULTILINE)
_ABSENT = re.compile(r"extern (?:\(\w+ ksym\) )?'(\w+)'")
_NO_OPERATION = re.compile(r"struct_ops init_kern \w+: Cannot find member (\w+)")
_NEEDS_LIBBPF = re.compile(r"'(bpf/\w+\.h)' file not found")


@dataclass(frozen=True, kw_only=True)
class _Registered:
    """A program in the kernel of a machine."""

    channel: Channel
    digest: str
    ids: tuple[str, ...]


class Programs:
    """The BPF programs that a run has registered, on one machine or several."""

    def __init__(self) -> None:
        self._registered: list[_Registered] = []
        self._described: dict[str, dict[str, Any]] = {}

    def add(self, control: OwnControl, channel: Channel, where: str, tell: Callable[[str], None]) -> None:
        """Have it registered there; raise ModuleUnfitError or EnvironmentUnfitError with the remedy."""
        sources = control.sources
        for use in control.uses:
            if use.params:
                message = (
                    f"{sources.place}: parameter {next(iter(use.params))}: a BPF program that runs as it is "
                    "has none; write the value into the program, or run the program in the guest"
                )
                raise ModuleUnfitError(message)
        offered, types = _kernel_of(channel, where)
        names = [use.kernel_name for use in control.uses]
        if self._is_there(channel, sources.sha256):
            return
        offered -= _take_leftovers_away(channel, names)
        require_free(names, offered, sources.place, where)
        program = _compiled(sources, types)
        self._described[sources.program or ""] = {
            "source_sha256": sources.sha256,
            "sha256": hashlib.sha256(program).hexdigest(),
            "compiler": _compiler(),
        }
        self._register(control, channel, program, where)
        tell(f"registered {', '.join(names)} of {sources.place} in {where}: a BPF program, run as it is")

    def options(self, digests: Iterable[str]) -> dict[str, Any]:
        """What of the provenance of a cell they are that runs these: program → what it was made of."""
        wanted = frozenset(digests)
        programs = {
            program: made for program, made in self._described.items() if made["source_sha256"] in wanted
        }
        return {"modules": programs} if programs else {}

    def close(self) -> None:
        """Take all of them away; connections that are open keep theirs until they close."""
        while self._registered:
            one = self._registered.pop()
            # Where a machine is out of reach, the next run finds the record and takes it away.
            with contextlib.suppress(ChannelError):
                run(one.channel, _UNREGISTER, one.digest, *one.ids)

    def _is_there(self, channel: Channel, digest: str) -> bool:
        """Machines may share a kernel, as name spaces do."""
        ours = any(one.digest == digest for one in self._registered)
        return ours and any(left["source_sha256"] == digest for left in _records(channel))

    def _register(self, control: OwnControl, channel: Channel, program: bytes, where: str) -> None:
        digest = control.sources.sha256
        done = run(channel, _REGISTER, digest, stdin=program)
        said = (done.stderr + done.stdout).decode("utf-8", "replace")
        ids = tuple(_REGISTERED.findall(said))
        self._registered.append(_Registered(channel=channel, digest=digest, ids=ids))
        record: dict[str, Any] = {
            "source_sha256": digest,
            "module": control.sources.program,
            "file_sha256": hashlib.sha256(program).hexdigest(),
            "asked": {},
            "address": "",
            "form": "bpf",
            "ids": ids,
            "names": [use.kernel_name for use in control.uses],
            "runner": os.getpid(),
        }
        offered = run(channel, _RECORD, digest, stdin=json.dumps(record).encode() + b"\n")
        for use in control.uses:
            if use.kernel_name not in offered.stdout.decode().split():
                self.close()
                raise ModuleUnfitError(refusal(said, control.sources, use.kernel_name, where))


def refusal(said: str, sources: Sources, name: str, where: str) -> str:
    """Why ``where`` did not take it: what bpftool printed as place, reason and remedy. Pure."""
    verdict = _VERDICT.search(said)
    if verdict is not None:
        at = list(_LINE.finditer(said, 0, verdict.start()))
        place = sources.place_of(at[-1]["file"], int(at[-1]["line"])) if at else str(sources.place)
        return f"{place}: the verifier of {where} refuses it: {verdict['said'].strip()}; correct it there"
    absent = _ABSENT.search(said)
    if absent is not None:
        place = _place_of(absent[1], sources)
        return f"{place}: {where} gives BPF programs no {absent[1]}; do without it, or write it"
    operation = _NO_OPERATION.search(said)
    if operation is not None:
        place = _place_of(operation[1], sources)
        return f"{place}: {where} has no operation {operation[1]}; remove it, or look for what it is there"
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["bpftool says nothing"]
    telling = next((line for line in lines if "failed" in line or "can't" in line), lines[-1])
    return (
        f"{_place_of(name, sources)}: {where} does not take {name}: {telling}; see "
        "that it has ssthresh, undo_cwnd, and cong_avoid or cong_control with the parameters of that kernel"
    )


def _place_of(word: str, sources: Sources) -> str:
    found = sources.line_of(word)
    return sources.shown(*found) if found is not None else str(sources.place)


def _kernel_of(channel: Channel, where: str) -> tuple[set[str], bytes]:
    """The congestion controls that it offers, and its types as C."""
    answer = ground(channel, _TYPES, _LACKS, f"a BPF program cannot run in {where}")
    offered, _, types = answer.partition(b"\n")
    return set(offered.decode().split()), types


def _records(channel: Channel) -> list[dict[str, Any]]:
    """What stands registered there of BPF programs, or did."""
    return [record for record in records(channel, "json") if record.get("form") == "bpf"]


def _take_leftovers_away(channel: Channel, names: Sequence[str]) -> set[str]:
    """Of a run that was killed; one that still runs keeps its own."""
    away: set[str] = set()
    for record in _records(channel):
        if set(record["names"]) & set(names) and not belongs_to_another(record["runner"]):
            run(channel, _UNREGISTER, record["source_sha256"], *record["ids"])
            away |= set(record["names"])
    return away


def _clang() -> str:
    found = next((path for name in _CLANGS if (path := shutil.which(name, path=search_path()))), None)
    if found is None:
        message = (
            "a BPF program is compiled by clang, which is missing; apt-get install clang libbpf-dev, or "
            "leave --backend out: the guest compiles the program natively"
        )
        raise EnvironmentUnfitError(message)
    return found


def _compiler() -> str:
    said = subprocess.run((_clang(), "--version"), capture_output=True, text=True, check=False).stdout
    return (said.splitlines() or [""])[0]


def _compiled(sources: Sources, types: bytes) -> bytes:
    """The object, for the kernel of these types."""
    assert sources.program is not None
    with tempfile.TemporaryDirectory(prefix="fabbbr-bpf-") as folder:
        work = Path(folder)
        for name, content in sources.contents.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            # Registered for as long as it is not taken away: bpftool holds no link.
            (work / name).write_bytes(content.replace(b'".struct_ops.link"', b'".struct_ops"'))
        (work / OF_A_KERNEL).write_bytes(types)
        own = (f"-ffile-prefix-map={work}=.", "-c", sources.program, "-o", "program.o")
        done = subprocess.run(
            (*_compile_command(), *own),
            cwd=work,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise ModuleUnfitError(_of_clang(done.stderr, sources))
        return (work / "program.o").read_bytes()


def _compile_command() -> tuple[str, ...]:
    """As the role bbr compiles ours."""
    machine = platform.machine()
    arch = {"x86_64": "x86", "aarch64": "arm64"}.get(machine, machine)
    folders = ("-I.", "-idirafter", f"/usr/include/{machine}-linux-gnu")
    target = ("-target", "bpf", "-mcpu=v3", f"-D__TARGET_ARCH_{arch}")
    return (_clang(), *target, "-g", "-O2", "-std=gnu11", *folders)


def _of_clang(said: str, sources: Sources) -> str:
    error = _ERROR.search(said)
    if error is None:
        lines = said.strip().splitlines()
        return f"{sources.place}: does not compile as BPF: {lines[-1] if lines else 'clang says nothing'}"
    place = sources.place_of(error["file"].removeprefix("./"), int(error["line"]))
    absent = _NEEDS_LIBBPF.search(error["said"])
    remedy = "apt-get install libbpf-dev" if absent else "correct it there"
    return f"{place}: does not compile as BPF: {error['said']}; {remedy}"
