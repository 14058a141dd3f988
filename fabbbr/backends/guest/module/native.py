"""A BPF program as a kernel module: for the guest, whose kernel runs no BPF.

Its C is compiled as it is behind the headers in ``bpf/``, which give SEC, BPF_PROG, helpers and maps their
meaning in a kernel; a file made here includes it and registers its congestion controls. Three things are
left out, so that every line stays where it is. Types that the kernel has itself: a program writes down of
them what it looks at, and a loader finds the places; here the kernel's headers do. Variables that a loader
would fill with the kernel's configuration. Casts that would hide from the compiler what an operation has
for parameters. Pure, but for reading those headers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from fabbbr.backends.complaints import AS_IT_IS, Complaint
from fabbbr.sources import Sources

PROBE = "fab_kernel"
"""A file that includes the kernel's headers alone; ``make fab_kernel.i`` says what they declare."""
_HEADERS = Path(__file__).with_name("bpf")
_FOLDER = "program"
_MAIN = """\
// SPDX-License-Identifier: GPL-2.0
#include <vmlinux.h>
{renamed}
#include "{folder}/{program}"
{undone}
#define FAB_OPS(use) {ops}
#define FAB_ARRAYS(use) {arrays}
#define FAB_STORAGES(use) {storages}
#include <register.h>
MODULE_LICENSE("{licence}");
"""
_KBUILD = """\
obj-m := {name}.o
ccflags-y += -I{headers} -Wno-missing-prototypes -Wno-missing-declarations -Wno-unknown-pragmas \
	-Wno-unused-function -Wno-unused-variable -Wno-declaration-after-statement -Wno-cast-function-type
"""
_HIDDEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_TYPE = re.compile(r"\b(struct|union|enum)\s+(\w+)\s*\{")
_AFTER_TYPE = re.compile(r"\s*(?:__attribute__\s*\(\(.*?\)\)\s*)*;")
_OF_CONFIGURATION = re.compile(r"\bextern\s[^;{}]*?\b(\w+)\s+__kconfig\b[^;]*;")
_HIDDEN_TYPE = re.compile(r"(\.\s*\w+\s*=\s*)(\(\s*void\s*\*\s*\))")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_CALLED = re.compile(r"\b(\w+)\s*\(")
_MEMBER = re.compile(r"(?:\.|->)\s*(\w+)\b")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_NO_FUNCTION = frozenset({"SEC", "__attribute__", "BPF_PROG", "BPF_PROG2", "BPF_STRUCT_OPS", "__section"})
_SECTION = re.compile(r"\bSEC\s*\(\s*\"([^\"]*)\"\s*\)")
_SECTIONS = re.compile(r"\??struct_ops(?:\.s)?(?:/\w+)?|\??\.struct_ops(?:\.link)?|license|version|\.maps|"
                       r"\.(?:ro)?data(?:\.\w+)?|\.bss(?:\.\w+)?")  # fmt: skip
_OPS = re.compile(r"\bstruct\s+tcp_congestion_ops\s+(\w+)[^=;{}()]*(?:SEC\s*\([^()]*\)\s*)?=\s*\{")
_LICENCE = re.compile(r"\bSEC\s*\(\s*\"license\"\s*\)\s*=\s*\"([^\"]*)\"")
_GPL = frozenset(
    {"GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"}
)
"""Licences that the kernel takes for compatible with its own."""
_MAP = re.compile(r"\}\s*(\w+)\s+SEC\s*\(\s*\"\.maps\"\s*\)")
_MAP_TYPE = re.compile(r"\b__uint\s*\(\s*type\s*,\s*(\w+)\s*\)")
_ARRAYS = ("BPF_MAP_TYPE_ARRAY", "BPF_MAP_TYPE_PERCPU_ARRAY")
_STORAGE = "BPF_MAP_TYPE_SK_STORAGE"
_FLAVOUR = re.compile(r"\bstruct\s+(\w+___\w+)")
_NOT_FOR_BPF = re.compile(r"\.\s*(get_info|owner)\s*=")
_CALLED_ALL_THE_SAME = re.compile(
    rf"BUG: {_FOLDER}/(?P<file>\S+):(?P<line>\d+): (?P<said>\w+ has no native form)"
)


@dataclass(frozen=True, kw_only=True)
class _Map:
    name: str
    kind: str
    at: int


@dataclass(frozen=True)
class _Text:
    """A file of the program, with comments and strings as blanks where code is looked for."""

    name: str
    whole: str

    @cached_property
    def code(self) -> str:
        return _HIDDEN.sub(lambda found: _blank(found[0]), self.whole)

    @cached_property
    def told(self) -> str:
        """With its strings, without its comments."""
        return _HIDDEN.sub(
            lambda found: _blank(found[0]) if found[0].startswith("/") else found[0], self.whole
        )

    @cached_property
    def statements(self) -> str:
        """Without directives."""
        return _DIRECTIVE.sub(lambda found: _blank(found[0]), self.code)

    def line(self, at: int) -> int:
        return self.whole.count("\n", 0, at) + 1


def module_name(program: str) -> str:
    """What the module is called that is made of it: not as one of the kernel's own."""
    stem = PurePosixPath(program).name.partition(".")[0]
    return f"bpf_{re.sub(r'[^A-Za-z0-9_]', '_', stem).removeprefix('bpf_')}"[:40]


def headers_digest() -> str:
    """Of all that makes a module of a program: another one, another module."""
    whole = hashlib.sha256(Path(__file__).read_bytes())
    for name, content in _headers().items():
        whole.update(f"{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()


def probe(work: Path) -> dict[str, bytes]:
    """The files by which to ask a kernel's headers what they declare."""
    kbuild = _KBUILD.format(name=PROBE, headers=work / "include")
    return {
        "Kbuild": kbuild.encode(),
        f"{PROBE}.c": b"#include <vmlinux.h>\n",
        **{f"include/{name}": content for name, content in _headers().items()},
    }


def laid_out(sources: Sources, declared: str, work: Path) -> dict[str, bytes]:
    """The files of the module. ``declared`` is what the kernel's headers declare, preprocessed."""
    assert sources.program is not None
    texts = _texts(sources)
    types = frozenset(found[2] for found in _TYPE.finditer(declared))
    edited = {f"{_FOLDER}/{text.name}": _edited(text, types).encode() for text in texts}
    other = {
        f"{_FOLDER}/{name}": content
        for name, content in sources.contents.items()
        if f"{_FOLDER}/{name}" not in edited
    }
    name = module_name(sources.program)
    main = _main(texts, sources.program, frozenset(_WORD.findall(declared)))
    kbuild = _KBUILD.format(name=name, headers=work / "include")
    return {**edited, **other, f"{name}.c": main.encode(), "Kbuild": kbuild.encode()}


def without_native_form(sources: Sources) -> Iterator[Complaint]:
    """What of a program has no meaning in a module, in the order of its lines."""
    texts = _texts(sources)
    for text in texts:
        yield from _in_text(sources, text)
    yield from _as_a_whole(sources, texts)


def _in_text(sources: Sources, text: _Text) -> Iterator[Complaint]:
    for section in _SECTION.finditer(text.told):
        if _SECTIONS.fullmatch(section[1]) is None:
            yield _complaint(
                sources, text, section.start(),
                f"a program of section {section[1]} has no native form: the guest's kernel runs no BPF, "
                "and compiles of it what is a congestion control",
            )  # fmt: skip
    for one in _maps(text):
        if one.kind not in (*_ARRAYS, _STORAGE):
            yield _complaint(sources, text, one.at, f"a map of type {one.kind} has no native form")
    for flavour in _FLAVOUR.finditer(text.statements):
        reason = f"{flavour[1]} has no native form: a loader chooses between flavours of a type"
        yield _complaint(sources, text, flavour.start(), reason)
    if _OPS.search(text.told):
        for member in _NOT_FOR_BPF.finditer(text.statements):
            reason = f"no kernel lets a BPF program set {member[1]}"
            yield _complaint(sources, text, member.start(), reason, "remove it")


def called_all_the_same(console: str, sources: Sources) -> Complaint | None:
    """What a guest says of a helper that is only known not to work when it is called."""
    found = _CALLED_ALL_THE_SAME.search(console)
    if found is None:
        return None
    place = sources.shown(found["file"], int(found["line"]))
    return Complaint(place=place, reason=found["said"], remedy=f"do without it, or {AS_IT_IS}")


def _as_a_whole(sources: Sources, texts: tuple[_Text, ...]) -> Iterator[Complaint]:
    program = next(text for text in texts if text.name == sources.program)
    if not any(_OPS.search(text.told) for text in texts):
        yield Complaint(
            place=sources.shown(program.name),
            reason="no struct tcp_congestion_ops stands in it, so it is no congestion control",
            remedy='add one, with SEC(".struct_ops")',
        )
    licence = _licence(texts)
    if licence is None:
        yield Complaint(
            place=sources.shown(program.name),
            reason="names no licence, and Linux takes congestion controls under the GPL alone",
            remedy='if it is, say so: char _license[] SEC("license") = "GPL";',
        )
    elif licence not in _GPL:
        found = sources.line_of("SEC") or (program.name, 1)
        yield Complaint(
            place=sources.shown(*found),
            reason=f"its licence is {licence!r}, and Linux takes congestion controls under the GPL alone",
            remedy="if it is under the GPL, say so there",
        )


def _complaint(
    sources: Sources, text: _Text, at: int, reason: str, remedy: str = f"do without it, or {AS_IT_IS}"
) -> Complaint:
    return Complaint(place=sources.shown(text.name, text.line(at)), reason=reason, remedy=remedy)


def _headers() -> Mapping[str, bytes]:
    found = sorted(_HEADERS.rglob("*.h"))
    return {file.relative_to(_HEADERS).as_posix(): file.read_bytes() for file in found}


def _texts(sources: Sources) -> tuple[_Text, ...]:
    return tuple(
        _Text(name, content.decode("utf-8", "replace"))
        for name, content in sources.contents.items()
        if name.endswith((".c", ".h"))
    )


def _blank(text: str) -> str:
    """As long, and of as many lines."""
    return re.sub(r"[^\n]", " ", text)


def _blank_statement(text: str) -> str:
    """The same, but directives among it stay."""
    parts, end = [], 0
    for found in _DIRECTIVE.finditer(text):
        parts += [_blank(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join((*parts, _blank(text[end:])))


def _edited(text: _Text, types: frozenset[str]) -> str:
    whole = text.whole
    for start, end in _left_out(text, types):
        whole = whole[:start] + _blank_statement(whole[start:end]) + whole[end:]
    for cast in _HIDDEN_TYPE.finditer(text.code):
        whole = whole[: cast.start(2)] + _blank(cast[2]) + whole[cast.end(2) :]
    return whole


def _left_out(text: _Text, types: frozenset[str]) -> Iterator[tuple[int, int]]:
    """What the kernel says itself: types that it has, and its configuration."""
    after = 0
    for found in _TYPE.finditer(text.statements):
        if found.start() < after or found[2] not in types:
            continue
        closed = _closing(text.statements, found.end())
        ends = _AFTER_TYPE.match(text.statements, closed + 1)
        if ends is not None:
            after = ends.end()
            yield found.start(), after
    for found in _OF_CONFIGURATION.finditer(text.statements):
        yield found.span()


def _closing(code: str, start: int) -> int:
    depth = 1
    for at in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return len(code)


def _functions(text: _Text) -> Iterator[str]:
    """The names of the functions that it defines, but for its programs."""
    code, before, at = text.statements, 0, 0
    while (at := code.find("{", at)) >= 0:
        head = code[before:at]
        head = head[max(head.rfind(";"), head.rfind("}")) + 1 :]
        names = [name for name in _CALLED.findall(head) if name not in _NO_FUNCTION]
        if head.rstrip().endswith(")") and names and "=" not in head and "BPF_" not in head:
            yield names[0]
        before = at = _closing(code, at + 1) + 1


def _main(texts: tuple[_Text, ...], program: str, words: frozenset[str]) -> str:
    """Includes the program. What it calls as the kernel calls something else gets another name before."""
    functions = dict.fromkeys(name for text in texts for name in _functions(text))
    macros = dict.fromkeys(name for text in texts for name in _MACRO.findall(text.code))
    members = frozenset(name for text in texts for name in _MEMBER.findall(text.code))
    other = [name for name in functions if name in words and name not in members]
    maps = [one for text in texts for one in _maps(text)]
    renamed = (
        *(f"#undef {name}" for name in {**functions, **macros}),
        *(f"#define {name} own_{name}" for name in other),
    )
    return _MAIN.format(
        renamed="\n".join(renamed),
        undone="\n".join(f"#undef {name}" for name in other),
        folder=_FOLDER,
        program=program,
        ops=_each(found[1] for text in texts for found in _OPS.finditer(text.told)),
        arrays=_each(one.name for one in maps if one.kind in _ARRAYS),
        storages=_each(one.name for one in maps if one.kind == _STORAGE),
        licence=_licence(texts),
    )  # fmt: skip


def _each(names: Iterator[str]) -> str:
    return " ".join(f"use({name})" for name in dict.fromkeys(names))


def _licence(texts: tuple[_Text, ...]) -> str | None:
    found = (_LICENCE.search(text.told) for text in texts)
    return next((one[1] for one in found if one is not None), None)


def _maps(text: _Text) -> Iterator[_Map]:
    for found in _MAP.finditer(text.told):
        opened = text.told.rfind("{", 0, found.start())
        kind = _MAP_TYPE.search(text.told, opened, found.start())
        yield _Map(name=found[1], kind=kind[1] if kind else "unknown to fabbbr", at=opened)
