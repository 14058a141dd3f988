"""What is wrong with a module, as one place, one reason and one remedy. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fabbbr.errors import ModuleUnfitError
from fabbbr.foreign import listed
from fabbbr.job.congestion import mainline_name
from fabbbr.sources import Sources
from fabbbr.spec.experiment import CCAS, MOST_NAME_CHARACTERS

_OWN = ("fab_bbr1", "fab_bbr1_cap3", "fab_bbr2", "fab_bbr3")
TAKEN_IN_GUEST = frozenset((*map(mainline_name, CCAS), *_OWN)) - {"bbr2", "bbr3"}
"""What the guest's kernel has of itself."""
_REGISTER = "tcp_register_congestion_control"
_ERROR = re.compile(
    r"^(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<said>.+)$", re.MULTILINE
)
_TOO_LONG = re.compile(
    r"^(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? warning: (?P<said>initializer-string for array.*)$",
    re.MULTILINE,
)
_NEAR = re.compile(r"near initialization for ['‘][^'’]*?\.(\w+)['’]")
# The words of modpost are others from Linux 7 on: the second of each pair.
_UNDEFINED = re.compile(r"""modpost: (?:"(\w+)" \[[^\]]*\]|\S+: symbol '(\w+)') undefined!""")
_GPL = re.compile(r"modpost: (?:\S+: )?GPL-incompatible module (?:\S+ )?uses GPL-only symbol '(\w+)'")
_TWICE = re.compile(r"modpost: \S+: '?(?:symbol ')?(\w+)' exported twice")
_NO_LICENCE = re.compile(r"modpost: (?:\S+: )?missing MODULE_LICENSE\(\)")
_SPACE = re.compile(r"modpost: (?:module \S+|\S+: module) uses symbol '?(\w+)'? from namespace '?(\w+)")
_IMPLICIT = re.compile(r"implicit declaration of function ['‘](\w+)['’]")
_OPERATIONS = re.compile(r"struct tcp_congestion_ops \{(.*?)\n\}", re.DOTALL)
_OPERATION = re.compile(r"^\s*(\w[\w\s\*]*\(\*(\w+)\)\([^;]*\));", re.MULTILINE)
_INTEGERS = {"byte": (0, 255), "short": (-(1 << 15), (1 << 15) - 1), "ushort": (0, (1 << 16) - 1),
             "int": (-(1 << 31), (1 << 31) - 1), "uint": (0, (1 << 32) - 1), "hexint": (0, (1 << 32) - 1),
             "long": (-(1 << 63), (1 << 63) - 1), "ulong": (0, (1 << 64) - 1), "ullong": (0, (1 << 64) - 1),
             }  # fmt: skip
_TRUTH = ("1", "0", "y", "n", "Y", "N", "on", "off", "yes", "no")
_ALSO_CALLED = re.compile(r" \{aka [^}]*\}")
_NO_FILE = re.compile(r"(\S+): No such file or directory")
_NO_MEMBER = re.compile(r"has no member named ['‘](\w+)['’]")
_REPLACED = {
    "prandom_u32_max": "get_random_u32_below", "prandom_u32": "get_random_u32", "del_timer": "timer_delete",
    "del_timer_sync": "timer_delete_sync", "from_timer": "timer_container_of", "strlcpy": "strscpy",
    "tcp_is_cwnd_limited_": "tcp_is_cwnd_limited", "init_timer": "timer_setup",
}  # fmt: skip
"""Functions that were there, and what came after them."""
AS_IT_IS = "run it as it is where a kernel takes BPF (--backend mininet)"
"""The other way for a BPF program that has no native form."""


@dataclass(frozen=True, kw_only=True)
class Complaint:
    """Why a module will not do."""

    place: str
    """File and line, as the user named them."""
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}; {self.remedy}"


@dataclass(frozen=True, kw_only=True)
class Against:
    """What a module is built for."""

    release: str
    prototypes: Mapping[str, str]
    """Operation of ``struct tcp_congestion_ops`` → how the kernel declares it."""
    exported: frozenset[str]
    known: frozenset[str]
    """Its functions and variables, exported or not."""
    taken: frozenset[str] = TAKEN_IN_GUEST
    """The congestion controls that it has already."""
    where: str = "the guest"
    """Whose kernel it is."""


def prototypes(header: str) -> dict[str, str]:
    """Operation → how ``net/tcp.h`` of a kernel declares it."""
    operations = _OPERATIONS.search(header)
    declared = _OPERATION.findall(operations[1]) if operations is not None else []
    return {name: " ".join(words.split()) for words, name in declared}


def before_building(sources: Sources, against: Against) -> Complaint | None:
    """What no compiler says, or says too late."""
    linux = f"Linux {against.release}"
    for named in sources.names:
        place = sources.shown(named.file, named.line)
        if len(named.name) > MOST_NAME_CHARACTERS:
            return Complaint(
                place=place,
                reason=f"the name {named.name!r} has {len(named.name)} characters, and {linux} takes "
                f"{MOST_NAME_CHARACTERS} (TCP_CA_NAME_MAX - 1)",
                remedy="shorten .name",
            )
        if named.name in against.taken:
            return Complaint(
                place=place,
                reason=f"{linux} has a congestion control {named.name!r} already, and takes no second",
                remedy=f"give .name another, e.g. {f'my_{named.name}'[:MOST_NAME_CHARACTERS]!r}",
            )
    if sources.program is None and sources.line_of(_REGISTER) is None:
        return Complaint(
            place=str(sources.place),
            reason=f"nothing in it calls {_REGISTER}, so it is no congestion control",
            remedy="register one in its init function, or name the folder of the module that does",
        )
    return None


def warnings(sources: Sources, against: Against) -> Iterator[Complaint]:
    """What builds and runs, and does something else than on the kernel that it was written for."""
    handles = sources.line_of("CA_EVENT_TX_START")
    moved = "cwnd_event_tx_start" in against.prototypes
    if sources.program is not None and handles is not None and handles[0].endswith(".h"):
        handles = None  # where a program writes down the kernel's constants
    if handles is not None and moved and sources.line_of("cwnd_event_tx_start") is None:
        yield Complaint(
            place=sources.shown(*handles),
            reason=f"Linux {against.release} tells of CA_EVENT_TX_START in an operation of its own, "
            "cwnd_event_tx_start, and never in cwnd_event: what stands there is not run",
            remedy="add .cwnd_event_tx_start and do it there",
        )


def of_output(output: str, sources: Sources, against: Against) -> Complaint:
    """The first thing that is wrong, by what make printed."""
    found = next(_in_output(output, sources, against), None)
    if found is not None and sources.program is not None:
        return replace(found, remedy=f"{found.remedy}, or {AS_IT_IS}")
    if found is not None:
        return found
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "***" in line or "rror" in line] or lines[-1:]
    said = telling[0] if telling else "make says nothing"
    return Complaint(
        place=str(sources.place),
        reason=f"it does not build for Linux {against.release}: {said}",
        remedy="build it with make -C <the kernel's tree> M=<its folder> as any module, and correct it",
    )


def _in_output(output: str, sources: Sources, against: Against) -> Iterator[Complaint]:
    error = _ERROR.search(output) or _TOO_LONG.search(output)
    if error is not None:
        following = output[error.end() :].partition(" error: ")[0]
        yield Complaint(
            place=sources.place_of(error["file"], int(error["line"])),
            reason=f"does not compile for Linux {against.release}: {_ALSO_CALLED.sub('', error['said'])}",
            remedy=_remedy_of_compiler(error["said"], following, against),
        )
    yield from _of_modpost(output, sources, against)


def _remedy_of_compiler(said: str, following: str, against: Against) -> str:
    member = _NEAR.search(following)
    if member is not None and member[1] in against.prototypes:
        return f"this kernel declares it as {against.prototypes[member[1]]}: give yours these parameters"
    function, header, absent = (find.search(said) for find in (_IMPLICIT, _NO_FILE, _NO_MEMBER))
    if function is not None:
        return _remedy_of_function(function[1], against)
    if header is not None:
        return f"put {header[1]} into the module's folder and name the folder, or use what this kernel has"
    if absent is not None:
        return _remedy_of_member(said, absent[1], against)
    if "initializer-string" in said:
        return f"a name has at most {MOST_NAME_CHARACTERS} characters (TCP_CA_NAME_MAX - 1): shorten it"
    return "correct it there; the module must build for this kernel"


def _remedy_of_member(said: str, name: str, against: Against) -> str:
    if "tcp_congestion_ops" in said:
        return f"this kernel's operations are {', '.join(against.prototypes)}"
    return f"this kernel calls it otherwise, or has it elsewhere: look for what became of {name}"


def _remedy_of_function(name: str, against: Against) -> str:
    if name.startswith("bpf_"):
        return f"{name} has no native form: do without it"
    if name in _REPLACED:
        return f"this kernel has {_REPLACED[name]} in its place"
    if name in against.exported:
        return f"include the header that declares {name}"
    if name in against.known:
        return f"{name} is the kernel's own and not for modules: write it anew"
    return f"this kernel has no {name}: write it, or use what took its place"


def _of_modpost(output: str, sources: Sources, against: Against) -> Iterator[Complaint]:
    linux = f"Linux {against.release}"
    undefined = _UNDEFINED.search(output)
    if undefined is not None:
        symbol = undefined[1] or undefined[2]
        has = "does not export" if symbol in against.known else "has no"
        yield Complaint(
            place=_line_of(symbol, sources),
            reason=f"needs {symbol}, and {linux} as {against.where} has it {has} {symbol}",
            remedy="do without it, or copy what it does into the module",
        )
    twice = _TWICE.search(output)
    if twice is not None:
        yield Complaint(
            place=_line_of(twice[1], sources),
            reason=f"exports {twice[1]}, which {linux} exports itself",
            remedy="remove its EXPORT_SYMBOL lines: nothing else uses them",
        )
    gpl = _GPL.search(output)
    if gpl is not None:
        yield Complaint(
            place=_line_of("MODULE_LICENSE", sources),
            reason=f"{linux} gives {gpl[1]} to modules under the GPL alone",
            remedy='if yours is, say so: MODULE_LICENSE("GPL")',
        )
    if _NO_LICENCE.search(output) is not None:
        yield Complaint(
            place=str(sources.place),
            reason=f"names no licence, which {linux} asks of every module",
            remedy='add MODULE_LICENSE("GPL") if it is under the GPL',
        )
    space = _SPACE.search(output)
    if space is not None:
        yield Complaint(
            place=_line_of(space[1], sources),
            reason=f"needs {space[1]}, which {linux} keeps for those who import {space[2]}",
            remedy=f'add MODULE_IMPORT_NS("{space[2]}")',
        )


def _line_of(word: str, sources: Sources) -> str:
    found = sources.line_of(word)
    return sources.shown(*found) if found is not None else str(sources.place)


def require_parameters(has: Mapping[str, str], params: Mapping[str, str], place: Path) -> None:
    """Raise ModuleUnfitError for a parameter that the module does not have, or cannot have that value.

    ``has`` is name → type of those that it has. The kernel only notes in its log that it ignores others.
    """
    for name, value in params.items():
        kind = has.get(name)
        if kind is None:
            there = f"has {listed(has)}" if has else "has none"
            message = f"{place}: no parameter {name} (it {there}); declare it with module_param, or remove it"
            raise ModuleUnfitError(message)
        why = _unfit(kind, value)
        if why is not None:
            message = f"{place}: parameter {name} = {value}: {why}; change it"
            raise ModuleUnfitError(message)


def _unfit(kind: str, value: str) -> str | None:
    if kind in ("bool", "invbool", "bint"):
        return None if value in _TRUTH else "it is a bool: write 1 or 0"
    if kind not in _INTEGERS:
        return None
    least, most = _INTEGERS[kind]
    try:
        number = int(value, 0)
    except ValueError:
        return f"it is of type {kind}: write a whole number"
    return None if least <= number <= most else f"it is of type {kind}, {least} to {most}"
