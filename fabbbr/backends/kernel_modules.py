"""A kernel module of the user's own in a kernel that runs: built there for it, and taken out again.

The machine builds it itself, against the headers of the kernel that it runs, as the role bbr does on its ways
``make`` and ``dkms``; that role has laid the ground (compiler and headers). Where DKMS has built for that
kernel, it builds this one too, in trees of its own, and signs it with the machine's key. Before any cell the
module is loaded once in each way that cells will run it. The agent loads it for a cell
(:mod:`fabbbr.agent.loading`), and after the cell it is out, so that the next may have other parameters.
What breaks in it breaks that machine: whoever can tries it in the guest first.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabbbr.backends.base import OwnControl
from fabbbr.backends.channel import Channel, ChannelError
from fabbbr.backends.complaints import (
    Against,
    before_building,
    of_output,
    prototypes,
    require_parameters,
)
from fabbbr.backends.loaded import OFFERED, RECORDS, belongs_to_another, ground, records, require_free, run
from fabbbr.errors import EnvironmentUnfitError, ModuleUnfitError
from fabbbr.model import Module
from fabbbr.sources import RECIPES, Sources

_BUILD_LIMIT_S = 600.0
_SOON, _LATE = 20, 360
"""Times that a module is tried to be taken out, half a second from one to the next. Connections whose program
was killed use it until they give up, after two minutes at most (``tcp_orphan_retries``)."""
_LATE_LIMIT_S = 240.0
_SUFFIX = "built"
"""Of the record of a module; its source lies in ``DIGEST.d``, what is loaded is ``DIGEST.ko``."""
_WORDS = """PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
tree=/lib/modules/$(uname -r)/build
"""
_GROUND = f"""{_WORDS}
[ "$(id -u)" = 0 ] || exit 71
[ -e /proc/modules ] || exit 72
[ "$(cat /proc/sys/kernel/modules_disabled 2>/dev/null || echo 0)" = 0 ] || exit 73
command -v make >/dev/null && command -v gcc >/dev/null || exit 74
[ -e "$tree/Makefile" ] || exit 75
command -v modinfo >/dev/null && command -v insmod >/dev/null || exit 76
uname -r && cat {OFFERED}"""
_GUEST = "; or leave --backend out: the guest takes modules, and nothing there can break"
_LACKS = {
    71: "is not run as root, and loading a module needs it; use sudo",
    72: "has a kernel that takes no modules (CONFIG_MODULES)",
    73: "takes no more modules until it boots (kernel.modules_disabled)",
    74: "has no compiler; apt-get install build-essential there",
    75: "has not the headers of the kernel that it runs; apt-get install linux-headers-$(uname -r) there "
    "(Rocky: kernel-devel-$(uname -r))",
    76: "has no modinfo and insmod; apt-get install kmod there",
}
_BUILD = f"""{_WORDS}
folder={RECORDS}/$1.d
rm -rf "$folder" && mkdir -p "$folder" && tar -xf - -C "$folder" || exit 1
exec make -C "$tree" M="$folder" modules 2>&1"""
_BUILD_BY_DKMS = f"""{_WORDS}
dkms status -k "$(uname -r)" 2>/dev/null | grep -q -e ': built' -e ': installed' || exit 0
cd {RECORDS}/$1.d || exit 1
file=$(find . -name '*.ko')
[ "$(printf '%s\\n' "$file" | wc -l)" = 1 ] || exit 0
trees={RECORDS}/$1.dkms
trap 'rm -rf "$trees"' EXIT
mkdir -p "$trees/built" && cp -r . "$trees/fab_own-1" || exit 1
cat >"$trees/fab_own-1/dkms.conf" <<END
PACKAGE_NAME="fab_own"
PACKAGE_VERSION="1"
BUILT_MODULE_NAME[0]="$(basename "$file" .ko)"
BUILT_MODULE_LOCATION[0]="$(dirname "$file")"
DEST_MODULE_LOCATION[0]="/updates/dkms"
MAKE[0]="make -C \\${{kernel_source_dir}} M=$trees/built/fab_own/1/build modules"
CLEAN="make -C \\${{kernel_source_dir}} M=$trees/built/fab_own/1/build clean"
END
own() {{ dkms "$@" -m fab_own -v 1 --dkmstree "$trees/built" --sourcetree "$trees"; }}
own add >"$trees/said" 2>&1 && own build -k "$(uname -r)" >>"$trees/said" 2>&1 ||
	{{ tail -q -n 20 "$trees/said" "$trees/built/fab_own/1/build/make.log" >&2; exit 1; }}
made=$(find "$trees/built/fab_own/1" -path '*/module/*.ko*')
case $made in
*.gz) gzip -dc "$made" ;;
*.xz) xz -dc "$made" ;;
*.zst) zstd -dc "$made" ;;
*) cat "$made" ;;
esac >"$trees/module" && mv "$trees/module" "$file" && dkms --version"""
"""After make has: that names the module, and says best what is wrong with its source."""
_STAGE = f"""{_WORDS}
cd {RECORDS}/$1.d || exit 1
find . -name '*.ko' | sed 's/^/built /'
file=$(find . -name '*.ko' | head -n 1)
[ -n "$file" ] && cp "$file" ../$1.ko && sha256sum ../$1.ko | sed 's/ .*//; s/^/sha256 /'
gcc --version | head -n 1 | sed 's/^/compiler /'
modinfo -F signer ../$1.ko | sed 's/^/signer /'
modinfo -F parmtype ../$1.ko | sed 's/^/parameter /'
cat >../$1.{_SUFFIX}"""
_TRY = f"""{_WORDS}
file={RECORDS}/$1.ko module=$2; shift 2
insmod "$file" "$@" && cat {OFFERED} && rmmod "$module\""""
_OUT = f"""{_WORDS}
out() {{
	tries=0
	while [ -d "/sys/module/$2" ] && ! rmmod "$2" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt "$3" ] || return 1
		sleep 0.5
	done
	rm -f {RECORDS}/$1.json
}}
away() {{ out "$@" && rm -rf {RECORDS}/$1.d {RECORDS}/$1.dkms {RECORDS}/$1.ko {RECORDS}/$1.{_SUFFIX}; }}
"""
_UNLOAD = f'{_OUT}out "$@"'
_REMOVE = f'{_OUT}away "$@"'
_REMOVE_WHEN_FREE = f"""{_OUT}
away "$1" "$2" {_SOON} || (trap '' HUP; away "$1" "$2" {_LATE}) </dev/null >/dev/null 2>&1 &"""
_KERNEL = f"""{_WORDS}
for folder in "$tree" "${{tree%build}}source"; do
	[ ! -e "$folder/include/net/tcp.h" ] || {{ cat "$folder/include/net/tcp.h"; break; }}
done
printf '\\f'; cut -f 2 "$tree/Module.symvers"; printf '\\f'; cut -d ' ' -f 3 /proc/kallsyms"""
"""What is looked at only when it does not build: three parts, between them form feeds."""


@dataclass(frozen=True, kw_only=True)
class _Built:
    """A module that a machine has built."""

    channel: Channel
    where: str
    digest: str
    name: str
    """In the kernel, as in ``/sys/module``."""
    made_of: dict[str, str]
    """``source_sha256``, ``sha256`` loaded, ``compiler``, ``built_by``, ``signer`` if it has one."""

    @property
    def way(self) -> str:
        """How it was built, for a reader."""
        signer = self.made_of.get("signer")
        return f"by {self.made_of['built_by']}" + (f", signed by {signer}" if signer else "")


class Modules:
    """The kernel modules that a run has had built, on one machine or several."""

    def __init__(self) -> None:
        self._built: list[_Built] = []

    def add(self, control: OwnControl, channel: Channel, where: str, tell: Callable[[str], None]) -> None:
        """Have it built and tried there; raise ModuleUnfitError or EnvironmentUnfitError with the remedy."""
        release, offered = _ground(channel, where)
        if self._is_there(channel, control.sources.sha256):
            return
        ours = {one.digest for one in self._built}
        offered -= _take_leftovers_away(channel, where, ours, tell)
        against = Against(
            release=release,
            prototypes={},
            exported=frozenset(),
            known=frozenset(),
            taken=frozenset(offered),
            where=where,
        )
        complaint = before_building(control.sources, against)
        if complaint is not None:
            raise ModuleUnfitError(str(complaint))
        names = [use.kernel_name for use in control.uses]
        require_free(names, offered, control.sources.place, where)
        try:
            self._build(control, channel, against, tell)
        except BaseException:
            with contextlib.suppress(ChannelError):
                run(channel, _REMOVE, control.sources.sha256, "-", "1")
            raise
        built = self._built[-1]
        tell(
            f"built {built.name} of {control.sources.place} for Linux {release} {built.way} and loaded it "
            f"once into {where}: what breaks in it breaks that machine"
        )

    def options(self, digests: Iterable[str]) -> dict[str, Any]:
        """What of the provenance of a cell they are that runs these: module → what it was made of."""
        wanted, told = frozenset(digests), dict[str, Any]()
        for one in self._built:
            if one.digest in wanted:
                same = told.get(one.name, one.made_of) == one.made_of
                told[one.name if same else f"{one.name} in {one.where}"] = one.made_of
        return {"modules": told} if told else {}

    def unload(self) -> None:
        """Take out what a cell has loaded: the next one may have other parameters.

        One that is still in use, or out of reach, is found loaded by the agent, which then says so.
        """
        for one in self._built:
            with contextlib.suppress(ChannelError):
                run(one.channel, _UNLOAD, one.digest, one.name, str(_SOON))

    def close(self) -> None:
        """Leave nothing of them on the machines; what connections still use goes when they have given up."""
        while self._built:
            one = self._built.pop()
            # Where a machine is out of reach, the next run finds the record and takes it away.
            with contextlib.suppress(ChannelError):
                run(one.channel, _REMOVE_WHEN_FREE, one.digest, one.name)

    def _is_there(self, channel: Channel, digest: str) -> bool:
        """Machines may share a kernel, as name spaces do."""
        ours = any(one.digest == digest for one in self._built)
        return ours and any(left["source_sha256"] == digest for left in records(channel, _SUFFIX))

    def _build(
        self, control: OwnControl, channel: Channel, against: Against, tell: Callable[[str], None]
    ) -> None:
        sources = control.sources
        built = run(channel, _BUILD, sources.sha256, stdin=_packed(sources), timeout_s=_BUILD_LIMIT_S)
        said = built.stdout.decode("utf-8", "replace")
        if built.returncode != 0 or "initializer-string" in said:
            raise ModuleUnfitError(str(of_output(said, sources, _looked_at(channel, against))))
        builder = _by_dkms(channel, sources, against.where, tell) or "make"
        told = _staged(control, channel)
        files = told.get("built", [])
        if len(files) != 1:
            message = f"{sources.place}: make built {len(files)} modules; name the folder of one"
            raise ModuleUnfitError(message)
        name = Path(files[0]).stem.replace("-", "_")
        parameters = dict(line.split(":", 1) for line in told.get("parameter", []))
        for use in control.uses:
            require_parameters(parameters, use.params, sources.place)
            _try(channel, use, name, sources, against.where)
        made_of = {"source_sha256": sources.sha256, "built_by": builder}
        made_of |= {key: "".join(told[key]) for key in ("sha256", "compiler", "signer") if key in told}
        self._built.append(
            _Built(channel=channel, where=against.where, digest=sources.sha256, name=name, made_of=made_of)
        )


def _ground(channel: Channel, where: str) -> tuple[str, set[str]]:
    """The release of its kernel, and the congestion controls that it offers."""
    answer = ground(channel, _GROUND, _LACKS, f"a kernel module cannot run in {where}", _GUEST)
    release, _, offered = answer.decode().partition("\n")
    return release, set(offered.split())


def _take_leftovers_away(
    channel: Channel, where: str, ours: Collection[str], tell: Callable[[str], None]
) -> set[str]:
    """Of runs that were killed; one that still runs keeps its own, and so does this one."""
    away: set[str] = set()
    loaded = {record["source_sha256"]: record["module"] for record in records(channel, "json")}
    for record in records(channel, _SUFFIX):
        digest = record["source_sha256"]
        if digest in ours or belongs_to_another(record["runner"]):
            continue
        module = loaded.get(digest, "-")
        if run(channel, _REMOVE, digest, module, "2").returncode != 0:
            tell(f"waiting for connections of a run that was killed, which still use {module} in {where}")
            left = run(channel, _REMOVE, digest, module, str(_LATE), timeout_s=_LATE_LIMIT_S).returncode
            if left != 0:
                message = f"{where} still uses {module} of a run that was killed; reboot the machine"
                raise EnvironmentUnfitError(message)
        away |= set(record["names"])
    return away


def _by_dkms(channel: Channel, sources: Sources, where: str, tell: Callable[[str], None]) -> str:
    """Have DKMS build it there anew, if that machine goes by it: its name and release, otherwise ""."""
    built = run(channel, _BUILD_BY_DKMS, sources.sha256, timeout_s=_BUILD_LIMIT_S)
    if built.returncode != 0:
        said = built.stderr.decode("utf-8", "replace").strip()
        tell(f"DKMS of {where} did not build {sources.place}, so what make built there is taken:\n{said}")
        return ""
    return built.stdout.decode("utf-8", "replace").strip().replace("dkms: ", "dkms-")


def _staged(control: OwnControl, channel: Channel) -> dict[str, list[str]]:
    """Put what was built where the agent looks for it; what it is: word → values."""
    names = [use.kernel_name for use in control.uses]
    record = {"source_sha256": control.sources.sha256, "names": names, "runner": os.getpid()}
    staged = run(channel, _STAGE, control.sources.sha256, stdin=json.dumps(record).encode() + b"\n")
    told: dict[str, list[str]] = {}
    for line in staged.stdout.decode("utf-8", "replace").splitlines():
        word, _, value = line.partition(" ")
        told.setdefault(word, []).append(value)
    return told


def _packed(sources: Sources) -> bytes:
    """As a tar archive, with the recipe that a lone file lacks."""
    contents = dict(sources.contents)
    if not any(recipe in contents for recipe in RECIPES):
        (stem,) = (Path(name).stem for name in contents if name.endswith(".c"))
        contents["Kbuild"] = f"obj-m := {stem}.o\n".encode()
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


def _looked_at(channel: Channel, against: Against) -> Against:
    """With what its kernel declares and exports."""
    header, exported, known = (run(channel, _KERNEL).stdout.decode("utf-8", "replace") + "\f\f").split("\f")[
        :3
    ]
    return Against(
        release=against.release,
        prototypes=prototypes(header),
        exported=frozenset(exported.split()),
        known=frozenset(known.split()),
        taken=against.taken,
        where=against.where,
    )


def _try(channel: Channel, use: Module, name: str, sources: Sources, where: str) -> None:
    """Load it once as cells will, and take it out again."""
    params = (f"{parameter}={value}" for parameter, value in use.params.items())
    done = run(channel, _TRY, sources.sha256, name, *params)
    offered = done.stdout.decode("utf-8", "replace").split()
    if done.returncode == 0 and use.kernel_name in offered:
        return
    with contextlib.suppress(ChannelError):
        run(channel, _UNLOAD, sources.sha256, name, str(_SOON))
    said = " ".join(done.stderr.decode("utf-8", "replace").split())
    if done.returncode == 0:
        said = f"it registers no {use.kernel_name}: the kernel offered {', '.join(offered)}"
    message = f"{sources.place}: {where} does not take it: {said}; see dmesg there"
    raise ModuleUnfitError(message)
